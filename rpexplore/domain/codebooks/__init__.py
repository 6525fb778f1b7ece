"""Codebooks in other people's formats, one file a format.

In reading order: `variables` (what dictionaries of data say of a variable, and the codebook that is
drafted from it), `statistics_file` (SPSS, Stata, SAS), `draft_file` (by its ending).

Imports the modules of `domain`, `common` and `errors`.
"""
