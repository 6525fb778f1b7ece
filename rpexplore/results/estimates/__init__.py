"""Best guesses at the counts: nonnegative and smooth tables, whole counts whose parts add up.

`nonnegative` has the nearest tables without cells below 0, `shrinkage` smooth ones and how far
they were shrunk; `area_cells`, `whole_areas` (from the top down) and `area_counts` (the folder) are
whole counts for areas.

Imports what `results` may import.
"""
