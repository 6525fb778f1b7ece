"""The language of own counts: lists of linear queries, each with a target (FFU).

Read `query_list` first: a list of coefficients over cells, which is what plans take. The language
it is written in: `conditions`, with `condition_tokens`, `value_comparisons` and
`condition_writer` (back to text). Lists as people write them: `definitions`, `definitions_file`,
`csv_files`; made many at once and edited: `builders`, `edits`. Well-known lists: `presets`, fitted
to a codebook by `preset_roles`, `age_texts` and `fitted_presets`.

Imports `workload`, `domain`, `common` and `errors`.
"""
