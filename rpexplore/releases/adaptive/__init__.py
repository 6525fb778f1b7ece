"""Adaptive releases: in rounds, the table that is fitted worst is selected and measured.

In reading order: `scores` (what a selection compares), `privacy_filter` (what may still be spent);
`error_bounds` (how wrong estimates may be, afterwards).

Imports what `releases` may import.
"""
