"""From records to exact counts. Private: nothing here writes a record or a count anywhere.

In reading order: `source` (what a source of records is), `counts`, `coding` (values to category
indices), `blocks` (fewer, larger marginals to count by), `counting` (one pass over batches),
`persons` (at most m records of a person), `area_coding` (which area a record lies in),
`batch_source`, `frames` (records in memory); `files/`, `databases/`.

Imports `domain`, `common` and `errors`; not planning.
"""
