"""The report on a plan, for whoever has to approve it: HTML, and PDF by a browser.

In reading order: `section` (what a section holds), `report`; the sections `privacy_label`,
`codebook`, `areas`, `accuracy`, `targets`, `fairness`, `context`, `nist_checklist`, `proof`,
`glossary`; `pdf`.

Imports `figures`, `analysis` and what these may import; not `export.reproduction`.
"""
