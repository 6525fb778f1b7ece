"""Workloads of a codebook with levels: they know them where a table is at one."""

import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError

AGES = {"name": "age", "constraints": {"minimum": 0, "maximum": 19}, "levels": {"five": 5}}
DOMAIN = rp.Domain.from_schema(
    {"fields": [AGES, {"name": "sex", "constraints": {"enum": ["F", "M"]}}]}
)


def test_tables_without_and_with_levels_are_united():
    plain, level = rp.Workload.all_up_to(DOMAIN, 1), rp.Workload.of(DOMAIN, ["age@five"])
    assert plain.domain == DOMAIN
    assert level.domain == DOMAIN.with_levels
    for united in (plain | level, level | plain):
        assert united.tables == [(), ("age",), ("sex",), ("age@five",)]


def test_those_of_other_codebooks_are_not_united():
    other = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 20}), 1)
    with pytest.raises(WorkloadError, match="Only workloads over one domain"):
        _ = rp.Workload.of(DOMAIN, ["age@five"]) | other


def test_bases_are_kept_when_levels_are_added():
    plain = rp.Workload.all_up_to(DOMAIN, 1).with_bases({"age": rp.Prefix()})
    united = plain | rp.Workload.of(DOMAIN, [("age@five", "sex")])
    assert united.basis_of(united.position("age"), 0) == rp.Prefix()
