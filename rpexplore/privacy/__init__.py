"""What a privacy budget is and what it means (docs/mathematics.md §2).

Read `budget` first: how much, and to whom the promise is made. `conversions` between privacy cost,
ρ, μ and (ε, δ), and what a test for membership can detect, is the mathematics below it;
`deployments` are published releases and their budgets, for comparison.

Imports `common` and `errors`.
"""
