"""How a plan is made again: as a Python script and as command lines.

In reading order: `part`, what each kind of part has to say (`tables` with `recipe`, `areas`,
`counts`), `script`, `command_line`.

Imports `scenarios` and what that may import; not `export.report`.
"""
