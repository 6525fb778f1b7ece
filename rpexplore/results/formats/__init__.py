"""Finished tables in the formats of catalogues, statistical agencies and other programs.

In reading order: `export` (copies of the tables, under names that all formats take, and what is
known of them); one module a format in `writers`, and `sdmx_structure`; `publishing` (the folder).
A finished release is never touched: exports are folders of
their own. `registry_entry` describes a release for the public registry of deployments.

Imports `results`, `reports` and what these may import.
"""
