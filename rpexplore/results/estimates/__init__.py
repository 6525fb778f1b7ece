"""Best guesses at the counts: smooth tables, and whole counts whose parts add up.

`shrinkage` has smooth tables and how far they were shrunk. Whole counts for areas are `area_cells`,
`whole_areas` (from the top down, of `family_tables`, with tables brought near by `nearer_tables`),
`area_subtrees` (each by itself, here or in a cluster) and `area_counts` (the folder).

Imports what `results` may import.
"""
