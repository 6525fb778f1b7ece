"""Scenarios compared.

`side_by_side` has their inputs and outcomes, `shared_tables` which is of more use, and where, over
the tables that all of them have, `before_and_after` what a change does to them.

Imports `analysis` and what that may import.
"""
