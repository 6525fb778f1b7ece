"""Public tables that nothing can be forecast from are refused, and do not end in good figures."""

import json

import pytest

import rpexplore as rp
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTable
from rpexplore.errors import WorkloadError

FIELDS = [{"name": name, "constraints": {"enum": ["0", "1", "2"]}} for name in ("a", "b")]
IMPOSSIBLE = [{"a": "0", "b": "1"}, {"a": "0", "b": "2"}]


def test_a_public_table_of_impossible_records_alone_is_refused():
    codebook = json.dumps({"fields": FIELDS, "impossible": IMPOSSIBLE})
    domain = rp.Domain.parse(codebook, "codebook.json")
    tables = rp.Workload.all_up_to(domain, 2)
    plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1"))
    values = (("0", "1", "2"),) * 2
    counts = ExpectedCounts(("a", "b"), values, (0.0, 50.0, 50.0, *[0.0] * 6))
    with pytest.raises(WorkloadError, match="count only records that the codebook states to be"):
        _ = rp.Forecast(plan, [PublicTable(counts)]).people
