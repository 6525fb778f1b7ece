"""What a privacy budget is and what it means (docs/mathematics.md §2).

In reading order: `budget`; `conversions` between privacy cost, ρ, μ and (ε, δ), what a test for
membership can detect; `deployments`, published releases and their budgets.

Imports `common` and `errors`.
"""
