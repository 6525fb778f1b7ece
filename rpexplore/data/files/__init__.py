"""Records in files and folders, counted in one pass, larger than memory if need be.

In reading order: `source`, `listing` (the files at a path), `csv_batches`, `statistics_batches` (of
SPSS, Stata, SAS), `columns` (header and values), `codebook_file` (what a file tells of attributes),
`public_files` (where records are refused), `offered` (files to choose from).

Imports `data`, `domain`, `common` and `errors`; not `data.databases`.
"""
