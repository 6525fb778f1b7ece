"""Rehearsal of smooth tables: how near they would come, tried on made-up records before the run.

In reading order: `made_up_records` (from public expected counts alone), `smooth_rehearsal`.

Imports `postprocessing` and what that may import.
"""
