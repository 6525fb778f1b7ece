"""A further basis needs its own class and an entry in `BASES`, and works everywhere."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import resources

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.attribute import Attribute
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios import bases as bases
from rpexplore.scenarios.bases import (
    BasisChoice,
    basis_choice_from_text,
    basis_choices_of,
    text_of_basis_choice,
)
from rpexplore.workload.bases import BASES, Basis, from_json, to_json
from rpexplore.workload.bases.base import Matrix, Operator
from rpexplore.workload.table_text import titles

DOMAIN = rp.Domain.from_sizes({"age": 5, "sex": 2})
AGE = DOMAIN["age"]


@dataclass(frozen=True)
class Steps(Basis):
    """The total, and pairs of values that lie `step` apart; then the single values."""

    step: int = 1

    kind = "steps"
    title = "pairs"
    option_help = "steps:2 (pairs of values that lie 2 apart)"
    text_forms = ("steps:STEP",)
    parameter = "number"
    parameter_title = "How far the values lie apart"
    min_values = 3

    def n_rows(self, attribute: Attribute) -> int:
        return 2 * attribute.size - self.step

    def operator(self, attribute: Attribute) -> Operator:
        n = attribute.size
        pairs = [(value, value + self.step) for value in range(n - self.step)]
        return Matrix.of_sets([*pairs, *((value,) for value in range(n))], n)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        labels, n_pairs = attribute.labels(), attribute.size - self.step
        pairs = [f"{labels[value]} or {labels[value + self.step]}" for value in range(n_pairs)]
        return [*pairs, *labels].__getitem__

    def parameter_text(self) -> str:
        return str(self.step)

    @classmethod
    def from_parameter(cls, text: str) -> "Steps":
        return cls(int(text))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(BASES, "steps", Steps)


@pytest.fixture
def workload():
    return rp.Workload.all_up_to(DOMAIN, 2).with_bases({"age": Steps(2)})


def dense() -> np.ndarray:
    """3 pairs that lie 2 apart of 5 values, and the 5 values."""
    pairs = np.eye(5)[:3] + np.eye(5)[2:]
    return np.vstack([pairs, np.eye(5)])


def test_a_plan_has_the_variances_of_the_same_matrix_and_keeps_them(workload, tmp_path):
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=0.5))
    explicit = plan_tables(
        workload.with_bases({"age": rp.CustomBasis(dense())}),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=0.5),
    )
    for table in ("age", ("age", "sex")):
        errors = plan.cell_standard_errors(table)
        np.testing.assert_allclose(errors, explicit.cell_standard_errors(table), rtol=1e-6)
    for row, error in zip(dense(), plan.cell_standard_errors("age"), strict=True):
        variance = plan.query_variance("age", where={"age": row.tolist()})
        assert variance == pytest.approx(error**2, rel=1e-9)
    plan.save(tmp_path / "plan.json")
    again = TablePlan.load(tmp_path / "plan.json")
    assert again.workload.basis_of(again.workload.position("age"), 0) == Steps(2)
    np.testing.assert_array_equal(
        again.cell_standard_errors("age"), plan.cell_standard_errors("age")
    )


def test_files_and_texts_name_it(workload):
    assert to_json(Steps(2)) == {"kind": "steps", "step": 2}
    assert from_json({"kind": "steps", "step": 2}) == Steps(2)
    (choice,) = basis_choices_of(workload)
    assert choice == BasisChoice("age", Steps(2))
    assert text_of_basis_choice(choice, []) == ["age=steps:2"]
    assert basis_choice_from_text(DOMAIN, "age=steps:2@age", None) == BasisChoice(
        "age", Steps(2), (("age",),)
    )


@pytest.mark.parametrize("kind", [kind for kind in BASES if kind != "steps"])
def test_each_basis_is_exported_and_has_its_fields_in_the_schema_of_plans(kind):
    basis = BASES[kind]
    assert getattr(rp, basis.__name__) is basis
    schema = resources.files("rpexplore.planning").joinpath("schemas/plan-2.json").read_text()
    forms = [form["properties"] for form in json.loads(schema)["$defs"]["basis"]["oneOf"]]
    (properties,) = [
        form for form in forms if kind in form["kind"].get("enum", [form["kind"].get("const")])
    ]
    assert properties.keys() == {"kind", *(field.name for field in fields(basis))}


def test_it_is_offered_and_described(workload):
    assert "steps" in bases.available_kinds(AGE)
    assert "steps" not in bases.available_kinds(DOMAIN["sex"])
    assert titles(workload, np.array([1, 3])) == ["age (pairs)", "age (pairs) × sex"]
    assert bases.describe_queries(Steps(2), AGE) == (
        "8 queries, such as “1 or 3”, “2 or 4” and “0”."
    )
