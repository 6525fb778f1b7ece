"""Solvers: each finds noise scales for one loss, with a certificate of how good they are."""
