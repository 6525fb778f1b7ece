"""What one takes away with a plan; nothing here was made from records.

Read `bundle` first: the zip file of a plan of whatever parts, which holds everything that the
others make. `report/` makes documents, `reproduction/` scripts and commands that make the plan
again.

Imports `figures`, `analysis` and what these may import.
"""
