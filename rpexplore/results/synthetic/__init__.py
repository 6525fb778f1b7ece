"""Synthetic records: records whose tables are near the tables of a release.

No row is a person: records are drawn from a model of the released tables, at no cost in privacy.

In reading order: `impossible`, `targets` (what the records are fitted to), `population` and
`graphical_model` (the engines); `comparison` (of the records' tables with the released ones),
`records`, `records_folder`.

Imports what `results` may import.
"""
