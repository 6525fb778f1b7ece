"""What there is to count: attributes, their values, and counts that are public.

In reading order: `attribute`, its values (`categories`; `ordered_values`, with `dates`, the
calendar; `amounts`) and their groups (`levels`), `domain`, `values` (which ones a text names, which
are impossible together), `structural_zeros` (which cells that leaves possible), `atoms` (groups of
cells), `codebook` (Table Schema JSON and CSV),
`codebook_formats` (other people's), `record_layout` (positions of columns), `hierarchy_file`
(.hrc), `count_rows` (counts by attributes in files), `expected_counts` (counts from public
sources), `public_tables` (several of them together),
`survey` (the sampling error beside the noise), `readings` (of a release: unbiased, nonnegative,
smooth), `smooth_rehearsal` (the errors of each, as simulated);
`area_tree` with `area_levels` (from tables of codes), `area_file` (from files), `area_tree_file`
(of plans), `area_codebook`, `named_areas`.

Imports `common` and `errors`.
"""
