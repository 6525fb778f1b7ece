"""What one takes away with a plan; nothing here was made from records.

Read `bundle` first: the zip file holds everything that the others make. `report/` makes documents,
`reproduction/` scripts and commands that make the plan again, `area_bundle` the zip file of plans
for areas.

Imports `figures`, `analysis` and what these may import.
"""
