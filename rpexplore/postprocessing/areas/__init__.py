"""Whole counts for areas: nonnegative, and parts add up to what they are parts of; sums of areas.

In reading order: `family_tables`, `nearest_tables`, `controlled_rounding`, `area_cells` (of which
attributes there are counts on each level), `known_totals`, `whole_counts` (from the top down),
`released_cells`, `area_counts` (the folder); `released_sums` (of unbiased answers, over areas that
are no area of the tree).

Imports what `postprocessing` may import.
"""
