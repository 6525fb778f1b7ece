"""Baselines: what plainer mechanisms give for the same tables at the same privacy cost.

All from formulas (docs/mathematics.md §16): nothing is measured, and no other mechanism is run.
`baselines` says what a baseline is, and has those that measure the tables themselves; `products`
(and what no mechanism can go below) are another kind, and `registry` lists all of them, those that
measure marginals among them. A new baseline is a class, or an instance of one that is there, and a
line in `registry`.

Imports `planning`, `planning.losses`, `planning.mechanism` and `workload`.
"""
