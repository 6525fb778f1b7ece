"""From records to exact counts. Private: nothing here writes a record or a count anywhere.

In reading order: `source` (what a source of records is, what it counts), `coding` (values to
category indices), `counting` (one pass over batches), `areas` (which area a record lies in),
`batch_source` (at most m records of a person), `frames` (records in memory); `files/`, `engines/`.

Imports `domain`, `common` and `errors`; not planning.
"""
