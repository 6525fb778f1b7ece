"""The best noise scales and strategies, each with a lower bound (docs/mathematics.md §5, §6, §8).

Noise scales: `solution` (what solvers return; weighted sums), `acceleration` (of iterations),
`largest_variance` (and p-norms), `caps` (on variances), `neighbours` (that replace a record, or of
a panel), `conic_program`.
Strategies: `strategy_matrix`, `strategy_rounding`. Own counts: `queries`.

Imports `planning.losses`, `planning.mechanism` and what these may import.
"""
