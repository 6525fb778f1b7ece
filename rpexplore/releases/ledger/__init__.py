"""The ledger: what was spent on each dataset, booked before noise is drawn.

In reading order: `events` (their kinds), `event_chain` (each chained to the one before), `stores`
(what keeps them: `ledger_file`, `ledger_database` with `ledger_tables`), `account` (what the events
say of a dataset, and what its limit allows), `ledger` (booking), `ledger_overlaps` (one account for
the same records), `ledger_frames`.

Imports what `releases` may import.
"""
