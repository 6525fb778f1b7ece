"""Baselines: what plainer mechanisms give for the same tables at the same privacy cost.

All from formulas (docs/mathematics.md §16): nothing is measured, and no other mechanism is run.
`base` says what a baseline is, `products`, `tables`, `marginals` and `best_product` are the kinds
that there are, `attribute_strategies` and `p_identity` what products measure of an attribute,
`bound` what no mechanism can go below, and `registry` lists them all. A new baseline is a class, or
an instance of one that is there, and a line in `registry`.

Imports `planning`, `planning.losses`, `planning.mechanism` and `workload`.
"""
