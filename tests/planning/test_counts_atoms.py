"""Plans of own counts about groups of cells: as good as those over all cells, kept and verified."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis.queries import (
    describe_profile,
    drawn_answers,
    profile_of_cells,
    query_baselines,
    spare_cells,
)
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.errors import RpexploreError
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.workload import query_definitions
from rpexplore.workload.conditions import condition_of_cells
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text
from tests.attacks.malformed import edited
from tests.support.plan_schemas import PLAN_VALIDATOR
from tests.support.query_lists import query_plan
from tests.support.strategies import domains

BUDGET = rp.Budget(rho="1/2")
TEXT = """\
adults in the north, women: age >= 18 & region == 3 & sex == 1 ± 20
adults in the north, men: age >= 18 & region == 3 & sex == 0 ± 20
young women: age < 30 & sex == 1 ± 40
everybody: total ± 80"""


@pytest.fixture(scope="module")
def plan() -> QueryPlan:
    domain = rp.Domain.from_sizes({"age": 100, "region": 12, "sex": 2})
    return query_plan(stated_from_text(domain, TEXT).queries, budget=BUDGET)


def by_atoms(domain: rp.Domain, text: str) -> StatedQueries:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_definitions, "MAX_CELLS", 0)
        return stated_from_text(domain, text)


@settings(deadline=None, max_examples=25)
@given(domains(max_attributes=3), st.data())
def test_plans_by_groups_are_those_by_cells(domain, data):
    """Both are within their certificates of one optimum: the same cost, the same profile."""
    n_cells = math.prod(domain.sizes.tolist())
    assume(2 <= n_cells <= 60)
    counted = st.lists(st.booleans(), min_size=n_cells, max_size=n_cells).filter(any)
    text = "\n".join(
        f"q{number}: {condition_of_cells(domain, np.array(cells))} @ {data.draw(st.integers(1, 9))}"
        for number, cells in enumerate(data.draw(st.lists(counted, min_size=1, max_size=6)))
    )
    cells, atoms = stated_from_text(domain, text).queries, by_atoms(domain, text).queries
    of_cells, of_atoms = query_optimum(cells), query_optimum(atoms)
    assert of_atoms.cost >= of_cells.lower_bound
    assert of_cells.cost >= of_atoms.lower_bound
    assert of_atoms.cost == pytest.approx(of_cells.cost, rel=1.3e-3)  # rounding may cost 0.1 %
    # What each cell's records cost is what those of its group cost.
    squares = of_atoms.strategy.column_squares[atoms.atoms.of_cells()]
    rows = of_atoms.strategy.integers[:, atoms.atoms.of_cells()]
    assert squares.tolist() == np.sum(rows**2, axis=0).tolist()


def test_a_plan_file_has_the_groups_and_is_verified(plan):
    text = plan.text
    content = json.loads(text)
    PLAN_VALIDATOR.validate(content)
    (part,) = content["parts"]
    assert part["atoms"]["groups"][0] == [[[0, 17]], [[18, 29]], [[30, 99]]]
    assert part["atoms"]["groups"][1] == [[[0, 2], [4, 11]], [[3, 3]]]
    assert len(part["certificate"]["cell_weights"]) == plan.queries.n_cells == 5
    again = QueryPlan.parse(text)
    assert again.text == text
    assert again.queries == plan.queries
    assert rp.verify(again).holds
    assert "over 5 groups of 2,400 cells" in str(again)


def test_a_file_whose_atoms_are_not_those_of_its_counts_is_refused(plan):
    content = json.loads(plan.text)
    (part,) = content["parts"]
    del part["atoms"]
    with pytest.raises(RpexploreError, match="at most 1,024 cells"):
        QueryPlan.parse(json.dumps(content), canonical=False)
    (part,) = (content := json.loads(plan.text))["parts"]
    part["atoms"]["steps"][-1][0][0] = 5  # one more group, of which no count knows
    with pytest.raises(RpexploreError, match=r"each of the 6 groups of 2,400 cells, got 5"):
        QueryPlan.parse(json.dumps(content), canonical=False)


def test_groups_of_a_file_with_one_value_changed_are_refused_or_are_groups(plan):
    """Whatever a file says, every record is in exactly one group, or the file is refused."""
    content = json.loads(plan.text)
    (part,) = content["parts"]
    codes = dict(enumerate(np.indices((100, 12, 2)).reshape(3, -1)))
    for atoms in edited(part["atoms"], random.Random(3), 300):
        part["atoms"] = atoms
        try:
            parsed = QueryPlan.parse(json.dumps(content), canonical=False)
        except RpexploreError:
            continue
        found = parsed.queries.atoms
        assert found is not None
        assert set(found.of_records(codes).tolist()) == set(range(len(found)))


def test_unused_budget_is_told_by_groups(plan):
    profile = profile_of_cells(plan)
    assert len(profile) == 5
    spare = spare_cells(plan)
    assert set(spare["cell"]) == set(profile["cell"][profile["spare"]])
    assert "groups of 2,400 cells" in describe_profile(plan, "people") or not len(spare)
    # Counting each spare group beside keeps every record within the plan's cost.
    cost = float(plan.exact_privacy_cost)
    assert np.allclose(
        spare["spare_cost"], (1 - plan.profile[plan.strategy.spare]) * cost, rtol=1e-12
    )
    assert query_baselines(query_optimum(plan.queries))["largest_ratio"].min() >= 1 - 1e-4


def test_public_counts_are_summed_by_groups(plan):
    domain = plan.queries.domain
    values = tuple(tuple(domain[name].stored_values()) for name in domain.names)
    counts = np.broadcast_to([8.0, 12.0], domain.sizes).ravel().tolist()
    public = PublicTables(domain, (PublicTable(ExpectedCounts(domain.names, values, counts)),))
    # 82 of 100 ages, one of 12 regions; 30 of 100 ages; all.
    wanted = pytest.approx([984, 656, 4_320, 24_000])
    assert all(row == wanted for row in drawn_answers(plan.queries, public).tolist())
