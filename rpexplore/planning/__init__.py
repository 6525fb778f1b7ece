"""Planning: workload, loss and budget become a plan, proven and verified. Never sees a record.

Papers, by the short names under which the code cites them (titles in docs/mathematics.md):
RP, ResidualPlanner (NeurIPS 2023); RP+, ResidualPlanner+ (VLDB Journal); FFU, Optimizing
Fitness-for-Use (VLDB 2021); ReM, marginal reconstruction with local non-negativity (NeurIPS 2024);
CKS, the discrete Gaussian (NeurIPS 2020); BV, Boyd and Vandenberghe, Convex Optimization (2004).
What is in none of them is derived in docs/mathematics.md.
"""
