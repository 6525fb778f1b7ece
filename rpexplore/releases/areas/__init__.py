"""Releases of tables in areas: a subtree after another, so that a country fits.

In reading order: `area_parts` (what is counted and measured at a time), `area_measurement`,
`area_answers` (least squares), `area_files` (tables and measurements on disk), `area_release`.

Imports what `releases` may import.
"""
