"""From records to exact counts. Private: nothing here writes a record or a count anywhere.

In reading order: `source` (what a source of records is, what it counts), `coding` (values to
category indices), `areas` (which area a record lies in), `persons` (at most m records of a person),
`counting` (one pass over batches), `frames` (records in memory); `files/`, `engines/`.

Imports `domain`, `common` and `errors`; not planning.
"""
