"""The ledger: what was spent on each dataset, booked before noise is drawn.

In reading order: `events` (what an entry holds), `account` (what entries say of a dataset),
`chain` (each event chained to the one before), `ledger` (booking, and where it is kept:
`ledger_file`, `ledger_database` with `ledger_tables` and `ledger_functions`), `overlaps` (one
account for the same records).

Imports what `releases` may import.
"""
