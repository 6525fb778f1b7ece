"""Lists of queries made from a domain, against counts over records."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import (
    Attribute,
    Categories,
    Domain,
    Hierarchy,
    Identity,
    Integers,
    Prefix,
    Ranges,
    Windows,
)
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.workload.query_files import (
    crossed_queries,
    marginal_queries,
    query_list,
    table_queries,
)
from tests.support.strategies import domains

DOMAIN = Domain(
    (
        Attribute("age", Integers(0, 19, 5)),
        Attribute("sex", Categories(("F", "M"))),
        Attribute("region", Integers(1, 3)),
    )
)
CELLS = list(product(range(4), range(2), range(3)))


def counted(holds):
    return [float(holds(*cell)) for cell in CELLS]


@given(domains(max_attributes=4, max_size=4), st.data())
def test_all_small_tables(domain, data):
    up_to = data.draw(st.integers(0, len(domain)))
    queries = marginal_queries(domain, up_to, 2.5)
    cells = np.array(list(product(*(range(size) for size in domain.sizes))))
    wanted = {
        tuple((cells[:, chosen] == values).all(axis=1).tolist())
        for order in range(up_to + 1)
        for chosen in map(list, combinations(range(len(domain)), order))
        for values in product(*(range(int(domain.sizes[index])) for index in chosen))
    }
    rows = [tuple((row == 1).tolist()) for row in queries.coefficients]
    assert len(rows) == len(wanted)
    assert set(rows) == wanted
    assert set(queries.targets.tolist()) == {2.5}
    assert queries.names[0] == "total"


def test_cumulative_counts():
    queries = crossed_queries(DOMAIN, "age", Prefix(), target=3)
    assert queries.names == ("age ≤ 4", "age ≤ 9", "age ≤ 14", "age ≤ 19")
    rows = [counted(lambda age, sex, region, k=k: age <= k) for k in range(4)]
    assert queries.coefficients.tolist() == rows
    assert queries.targets.tolist() == [3, 3, 3, 3]


def test_cumulative_counts_by_another_attribute():
    queries = crossed_queries(DOMAIN, "age", Prefix(), ["region"])
    rows = [
        counted(lambda age, sex, region, k=k, r=r: age <= k and region == r)
        for k in range(4)
        for r in range(3)
    ]
    assert queries.coefficients.tolist() == rows
    assert queries.names[:4] == (
        "age ≤ 4 × region 1", "age ≤ 4 × region 2", "age ≤ 4 × region 3", "age ≤ 9 × region 1",
    )  # fmt: skip


def test_ranges():
    queries = crossed_queries(DOMAIN, "region", Ranges(), ["sex"])
    rows = [
        counted(lambda age, sex, region, s=s, a=a, b=b: sex == s and a <= region <= b)
        for s in range(2)
        for a in range(3)
        for b in range(a, 3)
    ]
    assert queries.coefficients.tolist() == rows
    assert queries.names[1] == "sex F × region 1 to 2"


def test_tables_asked_in_any_way():
    queries = table_queries(
        DOMAIN,
        [
            {"sex": Identity(), "age": Hierarchy((2,))},
            {"age": Prefix()},
            {},
            {"region": Windows(2)},
        ],
    )
    # The order of attributes is the domain's, and what counts the same cells is left out.
    names = [f"age {label} × sex {sex}" for label in ("0 to 9", "10 to 19") for sex in "FM"]
    assert queries.names[:6] == ("sex F", "sex M", *names)
    assert queries.names[14:] == ("age ≤ 4", "age ≤ 9", "age ≤ 14", "age ≤ 19", "region 1",
                                  "region 1 to 2", "region 2 to 3")  # fmt: skip
    assert len({row.tobytes() for row in queries.coefficients}) == len(queries)
    index = queries.names.index("age 10 to 19 × sex M")
    result = queries.coefficients[index].tolist()
    assert result == counted(lambda age, sex, region: age >= 2 and sex == 1)


def test_a_query_that_is_there_already_is_left_out_and_names_stay_distinct():
    one, two, three = np.eye(3)
    domain = Domain.from_sizes({"x": 3})
    listed = [("a", one, 1), ("b", one, 2), ("a", two, 3), ("a (2)", three, 4), ("c", two, 5)]
    queries = query_list(domain, listed)
    assert queries.names == ("a", "a (2)", "a (2) (2)")
    assert queries.coefficients.tolist() == np.eye(3).tolist()
    assert queries.targets.tolist() == [1, 3, 4]


def test_names_that_would_be_the_same_are_numbered():
    domain = Domain((Attribute("x", Categories(("1 × y 1", "1"))), Attribute("y", Integers(1, 2))))
    assert "x 1 × y 1 (2)" in marginal_queries(domain, 2).names


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: marginal_queries(DOMAIN, 4), WorkloadError, "at most 0 to 3 attributes, got 4"),
        (lambda: marginal_queries(DOMAIN, -1), WorkloadError, "got -1"),
        (lambda: crossed_queries(DOMAIN, "ages", Prefix()), DomainError, "no attribute 'ages'"),
        (lambda: crossed_queries(DOMAIN, "age", Prefix(), ["age"]), WorkloadError, "leave it out"),
        (lambda: crossed_queries(DOMAIN, "age", Ranges(), ["x"]), DomainError, "no attribute 'x'"),
        (lambda: table_queries(DOMAIN, []), WorkloadError, "at least one, got none"),
        (lambda: table_queries(DOMAIN, [{"sex": Hierarchy()}]), WorkloadError, "must have groups"),
        (lambda: marginal_queries(DOMAIN, 1, 0), WorkloadError, "target of count 'total'"),
        # Refused before anything large is made.
        (lambda: marginal_queries(Domain.from_sizes({f"a{i}": 2 for i in range(10)}), 10),
         WorkloadError, "at most 10,000 own counts, got 59,049"),
        (lambda: crossed_queries(Domain.from_sizes({"a": 1024}), "a", Ranges()),
         WorkloadError, "got 524,800"),
        (lambda: marginal_queries(Domain.from_sizes({"a": 1025}), 1), WorkloadError, "1,024 cells"),
    ],
)  # fmt: skip
def test_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
