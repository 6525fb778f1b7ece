"""Finished tables in the formats of catalogues, statistical agencies and other programs.

In reading order: `columns` (names that all formats take), `export` (copies of the tables, and what
is known of them); one module a format in `writers`, and `sdmx_structure`; `publishing` (the folder
that is written). A finished release is never touched: exports are folders of their own.
`registry_entry` describes a release for the public registry of deployments.

Imports `postprocessing`, `export.report` and what these may import.
"""
