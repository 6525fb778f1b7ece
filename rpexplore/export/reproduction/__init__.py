"""How a plan is made again: as a Python script and as command lines.

Read `recipe` first: what has to be said to make a plan again. Then `script` and `command_line`,
which say it; each kind of part has its own lines: `part` (their form), `tables`, `areas`, `counts`.
`python_source` writes values as Python.

Imports `scenarios` and what that may import; not `export.report`.
"""
