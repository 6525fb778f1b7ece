"""What one takes away with a plan; nothing here was made from records.

`report/` (documents), `reproduction/` (scripts and commands that make the plan again), `bundle`
(all of it in one zip file), each for every kind of part.

Imports `figures`, `analysis` and what these may import.
"""
