"""The ledger: what was spent on each dataset, booked before noise is drawn.

In reading order: `events` (their kinds), `ledger_file` (where they are kept, each chained to the
one before), `ledger` (accounts, limits, booking), `ledger_overlaps` (one account for the same
records), `ledger_frames`.

Imports what `releases` may import.
"""
