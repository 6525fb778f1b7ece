"""How a plan is made again: as a Python script and as command lines.

In reading order: `recipe`, `literals`, `script_tables`, `script`, `command_line`,
`custom_basis_files`.

Imports `scenarios` and what that may import; not `export.report`.
"""
