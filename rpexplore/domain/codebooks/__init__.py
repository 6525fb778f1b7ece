"""Codebooks in other people's formats, one file a format.

In reading order: `variables` (what dictionaries of data say of a variable, and the codebook that is
drafted from it), `statistics_file` (SPSS, Stata, SAS), `ddi`, `draft_file` (which of them a file
is); `hierarchy_file` (groups of τ-ARGUS).

Imports the modules of `domain`, `common` and `errors`.
"""
