"""What there is to count: attributes, their values, and counts that are public.

In reading order: `attribute`, `domain`, `codebook` (Table Schema JSON and CSV), `json_schemas`,
`value_selection` (which values a text names), `expected_counts` (counts from public sources),
`expected_counts_file`, `publishable` (which cells are), `readings` (of a release: unbiased,
nonnegative, smooth), `smooth_rehearsal` (the errors of each, as rehearsed), `provenance`
(attributes to be completed, values that came from records), `area_tree` with `area_levels` (from
tables of codes), `area_file` (from files), `area_tree_file` (of plans), `area_codebook` and
`area_range` (a part of a tree, worked on at a time).

Imports `common` and `errors`.
"""
