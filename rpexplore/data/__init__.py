"""From records to exact counts. Private: nothing here writes a record or a count anywhere.

Read `source` first: it says what a source of records is, and so what everything else here must do.
Then `counts` (the result), `coding` (values to category indices), `blocks` (fewer, larger marginals
to count by) and `counting` (one pass over batches), which is the heart. `persons` keeps at most m
records of a person, and `area_coding` says which area a record lies in. `batch_source` and `frames`
are sources of records in batches and in memory; `files/` and `databases/` are the others.

Imports `domain`, `common` and `errors`; not planning.
"""
