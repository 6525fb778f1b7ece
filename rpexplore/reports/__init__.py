"""What one takes away with a plan; nothing here was made from records.

The report, for whoever has to approve a plan, as HTML, and PDF by a browser: `section` (what a
section holds), `kinds` (of parts), `report`; its sections in `first_pages`, `tables`, `areas`,
`counts`, `adaptive`, `evidence`. How a plan is made again: `recipe`,
`again` (part by part), `script`. All of it in one zip file: `bundle`.

Imports `figures`, `analysis` and what these may import.
"""
