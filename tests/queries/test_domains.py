"""The attributes that a list of queries can be about."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Domain
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.queries.domains import choosable, chosen_domain, domain_of_conditions

SCHEMA = Domain.from_sizes({"age": 100, "sex": 2, "region": 12, "id": 5_000, "yes": 1})


@given(st.lists(st.integers(1, 1100), min_size=1, max_size=6), st.data())
def test_what_can_be_chosen_fits(sizes, data):
    domain = Domain.from_sizes({f"a{place}": size for place, size in enumerate(sizes)})
    chosen: list[str] = []
    while names := choosable(domain, chosen):
        for name in domain.names:
            wanted = [*chosen, name]
            fits = math.prod(domain[each].size for each in wanted) <= 1024
            assert (name in names) == (fits and name not in chosen)
        chosen.append(data.draw(st.sampled_from(names)))
        found = chosen_domain(domain, chosen)
        assert found.attributes == tuple(each for each in domain if each.name in chosen)


def test_attributes_to_choose_from():
    assert choosable(SCHEMA) == ("age", "sex", "region", "yes")
    assert choosable(SCHEMA, ["age"]) == ("sex", "yes")
    assert choosable(SCHEMA, ["age", "sex"]) == ("yes",)
    assert choosable(Domain.from_sizes({"a": 32, "b": 32, "c": 33}), ["a"]) == ("b",)  # 1,024 cells
    with pytest.raises(DomainError, match="no attribute 'ages'"):
        choosable(SCHEMA, ["ages"])


@pytest.mark.parametrize(
    ("names", "error", "told"),
    [
        ([], WorkloadError, "at least one attribute"),
        (["age", "region"], WorkloadError, "100 × 12 = 1,200; choose fewer"),
        (["sex", "sex"], DomainError, "named twice"),
        (["ages"], DomainError, "no attribute 'ages'"),
    ],
)
def test_what_cannot_be_chosen(names, error, told):
    with pytest.raises(error, match=told):
        chosen_domain(SCHEMA, names)


def test_the_domain_of_conditions():
    domain = domain_of_conditions(SCHEMA, ["region == 3 | total", "", "sex = 1 & region < 5"])
    assert domain == Domain((SCHEMA["sex"], SCHEMA["region"]))
    with pytest.raises(WorkloadError, match=r"At character 1 .* no attribute 'ages'"):
        domain_of_conditions(SCHEMA, ["ages < 5"])
    with pytest.raises(WorkloadError, match="at least one attribute"):
        domain_of_conditions(SCHEMA, ["total"])
