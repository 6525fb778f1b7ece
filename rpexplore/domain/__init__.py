"""What there is to count: attributes, their values, and counts that are public.

Read `attribute` and `domain` first: all other packages speak in these two. Then `codebook` (how
they are read and written), `json_schemas` and `value_selection` (which values a text names).

public counts  `expected_counts`, `expected_counts_file`, `publishable` (which cells are good)
results        `readings` (unbiased, nonnegative, smooth), `smooth_rehearsal` (their errors)
where from     `provenance` (attributes to be completed, values that came from records)
areas          `area_tree`, the tree itself; `area_levels` (from tables of codes), `area_file`,
               `area_tree_file` (of plans), `area_codebook`, `area_range` (a part of a tree)

Imports `common` and `errors`.
"""
