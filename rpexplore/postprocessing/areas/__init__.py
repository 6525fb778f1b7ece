"""Whole counts for areas: nonnegative, and parts add up to what they are parts of. Biased.

In reading order: `family_tables`, `nearest_tables`, `controlled_rounding`, `area_cells` (of which
attributes there are counts on each level), `known_totals`, `whole_counts` (from the top down).

Imports what `postprocessing` may import.
"""
