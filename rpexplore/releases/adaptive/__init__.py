"""Adaptive releases: in rounds, the table that is fitted worst is selected and measured.

In reading order: `scores` (what a selection compares), `privacy_filter` (what may still be spent),
`outcomes` (what rounds leave on the disk), `estimates` (the fit of it), `rounds`; of their results
`error_bounds` and `table_bounds` (how wrong they may be), `adaptive_files`, `adaptive_release`.

Imports what `releases` may import.
"""
