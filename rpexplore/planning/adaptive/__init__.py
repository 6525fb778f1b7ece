"""Adaptive plans: what is measured is selected while a release runs (docs/mathematics.md §17).

In reading order: `candidates` (what can be selected), `schedule` (with how much of the budget, and
when), `adaptive_plan`, `adaptive_planner`, `adaptive_plan_file`, `adaptive_verification`.

Imports `planning`, `planning.losses`, `planning.mechanism`, `planning.solvers` and what these may
import.
"""
