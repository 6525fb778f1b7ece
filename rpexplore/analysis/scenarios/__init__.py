"""Scenarios compared: their inputs and outcomes, `side_by_side`."""
