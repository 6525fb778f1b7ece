"""How a plan is made again: as a Python script and as command lines.

In reading order: `recipe`, `script`, `command_line`; `area_script`, for areas.

Imports `scenarios` and what that may import; not `export.report`.
"""
