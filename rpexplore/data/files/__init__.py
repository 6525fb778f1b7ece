"""Records in files and folders, counted in one pass, larger than memory if need be.

In reading order: `record_files` (the files at a path), `source` (their records), `csv_batches`,
`fixed_batches` (of lines of one width), `statistics_batches` (of SPSS, Stata, SAS), `columns`
(header and values; what a file tells of attributes), `offered` (files to choose from, where records
are refused).

Imports `data`, `domain`, `common` and `errors`; not `data.engines`.
"""
