"""What there is to count: attributes, their values, and counts that are public.

In reading order: `attribute`, `domain`, `codebook` (Table Schema JSON and CSV), `json_schemas`,
`value_selection` (which values a text names), `expected_counts` (counts from public sources),
`expected_counts_file`, `publishable` (which cells are), `readings` (of a release: unbiased,
nonnegative, smooth), `provenance` (attributes to be completed, values that came from records).

Imports `common` and `errors`.
"""
