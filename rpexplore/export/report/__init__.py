"""The report on a plan, for whoever has to approve it: HTML, and PDF by a browser.

In reading order: `section` (what a section holds), `kinds` (of plans), `report`; the sections
`privacy_label`, `board`, `approvals`, `codebook`, `areas`, `adaptive`, `accuracy`, `targets`,
`fairness`, `baselines`, `context`, `readings` (what can be made of the release), `nist_checklist`,
`proof`, `glossary`; `pdf`.

Imports `figures`, `analysis` and what these may import; not `export.reproduction`.
"""
