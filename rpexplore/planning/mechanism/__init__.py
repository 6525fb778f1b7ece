"""The residual mechanism: what noise scales cost and what they give (docs/mathematics.md §3, §4).

In reading order: `strategy` (what is measured of one attribute), `closure` (residuals; p and B),
`variances` (of tables and their cells), `accounting` (in exact integers), `reconstruction`
(measured residuals to marginals, and the noise of these).

Imports `planning.losses` and what that may import.
"""
