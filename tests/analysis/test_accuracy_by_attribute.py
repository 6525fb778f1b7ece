"""Accuracy by attribute, against a loop over tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import fairness as attributes
from rpexplore.workload.table_text import title
from tests.analysis.schemes import accuracy_of, with_errors
from tests.support.strategies import workloads

DOMAIN = rp.Domain.from_sizes({"age": 30, "sex": 2, "region": 7, "unused": 4})


@settings(deadline=None, max_examples=50)
@given(st.data(), workloads(max_tables=12))
def test_against_a_loop_over_tables(data, workload):
    count = len(workload)
    errors = np.array(data.draw(st.lists(st.floats(1, 100), min_size=count, max_size=count)))
    frame = attributes.by_attribute(with_errors(workload, errors))
    rows = {row["attribute"]: row for row in frame.to_dict("records")}
    used = {name for table in workload.tables for name in table}
    assert set(rows) == used
    assert frame["median"].tolist() == sorted(frame["median"], reverse=True)
    for name, row in rows.items():
        positions = [position for position, table in enumerate(workload.tables) if name in table]
        result = np.sort(errors[positions])
        assert row["tables"] == len(positions)
        assert row["values"] == workload.domain[name].size
        assert (row["smallest"], row["largest"]) == (result[0], result[-1])
        assert row["median"] == pytest.approx(np.median(result), rel=1e-12)
        assert row["lower_quartile"] == np.quantile(result, 0.25, method="lower")
        assert row["upper_quartile"] == np.quantile(result, 0.75, method="higher")
        titled = {title(workload.tables[place]): errors[place] for place in positions}
        assert titled[row["least_accurate_table"]] == result[-1]
        assert titled[row["most_accurate_table"]] == result[0]


def test_the_ends_of_many():
    domain = rp.Domain.from_sizes({f"a{i:03}": i + 2 for i in range(101)})
    frame = attributes.by_attribute(accuracy_of(rp.Workload.all_up_to(domain, 1)))
    drawn, left_out = attributes.first_and_last(frame, 41)
    assert left_out == 60
    names = frame["attribute"].tolist()
    assert drawn["attribute"].tolist() == names[:21] + names[-20:]
    assert attributes.first_and_last(frame, 101)[0] is frame


def test_words():
    workload = rp.Workload.of(DOMAIN, ["age", "sex", "region", ("age", "sex")])
    accuracy = accuracy_of(workload, rp.SumOfVariances("cells"))
    frame = attributes.by_attribute(accuracy)
    sentence = attributes.describe(frame, accuracy, "people")
    assert sentence.startswith(
        f"Tables that contain {frame['attribute'][0]} are the least accurate"
    )
    assert f"those that contain {frame['attribute'][2]} the most" in sentence
    assert sentence.endswith("In no table: unused.")


def test_words_where_attributes_do_not_differ():
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 2), rp.MaxVariance())
    sentence = attributes.describe(attributes.by_attribute(accuracy), accuracy, "people")
    assert sentence.startswith("Tables have the same median standard error of ")
    assert sentence.endswith(" people, whichever attribute they contain.")
    assert "In no table" not in sentence


def test_words_where_only_one_attribute_has_tables():
    accuracy = accuracy_of(rp.Workload.of(DOMAIN, ["age"]))
    sentence = attributes.describe(attributes.by_attribute(accuracy), accuracy, "people")
    assert sentence.startswith("Tables that contain age have a median standard error of ")


def test_only_the_total():
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 0))
    frame = attributes.by_attribute(accuracy)
    assert frame.empty
    assert "only the total" in attributes.describe(frame, accuracy, "people")
