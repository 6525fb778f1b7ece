"""Noise, the ledger, measurement, and the folders of releases."""
