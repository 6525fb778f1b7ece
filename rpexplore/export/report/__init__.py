"""The report on a plan, for whoever has to approve it: HTML, and PDF by a browser.

In reading order: `section` (what a section holds), `part` (what a report tells of a part of the
plan), `kinds` (their words), `report`; by kind of part `tables` with `accuracy`, `fairness`,
`baselines`, `targets` and `readings`, `areas`, `counts`, `adaptive`; of the whole plan
`privacy_label`, `board`, `approvals`, `codebook`, `context`, `nist_checklist`, `proof`, `glossary`;
`pdf`.

Imports `figures`, `analysis` and what these may import; not `export.reproduction`.
"""
