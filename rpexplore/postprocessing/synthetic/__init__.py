"""Synthetic records: records whose tables are near the tables of a release.

No row is a person: records are drawn from a model of the released tables, at no cost in privacy.

In reading order: `impossible`, `targets` (what the records are fitted to),
`smooth_targets`, `indicators`, `population`, `tree_start`, `population_engine`, `graphical_model`
(another engine, by exact inference); `comparison` (of the records' tables with the released ones),
`records`, `records_folder`, `duration`.

Imports what `postprocessing` may import.
"""
