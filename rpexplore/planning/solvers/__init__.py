"""The best noise scales and strategies, each with a lower bound (docs/mathematics.md §5, §6, §8).

Noise scales: `solution` (what solvers return; weighted sums), `squarem`, `p_norm` (and the
largest variance), `max_cell_variance`, `interior_point`, `feasibility` (can caps be kept?),
`capped_sum`, `capped_max`, `symmetry`, `conic_program`. Strategies: `anderson`, `matrix_root`,
`strategy_matrix`, `strategy_descent`, `strategy_rounding`. Query lists: `query_root`,
`fitness_for_use`, `query_sum`, `query_rounding`.

Imports `planning.losses`, `planning.mechanism` and what these may import.
"""
