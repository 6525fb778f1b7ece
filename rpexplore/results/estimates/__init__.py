"""Best guesses at the counts: smooth tables, and whole counts whose parts add up.

`shrinkage` has smooth tables and how far they were shrunk; `area_cells`, `whole_areas` (from the
top down), `area_subtrees` (each by itself, here or in a cluster) and `area_counts` (the folder) are
whole counts for areas.

Imports what `results` may import.
"""
