"""Curves of shares, tested through their data."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.distributions import curves as distribution_functions
from rpexplore.analysis.distributions import errors_by_order, errors_by_plan
from rpexplore.analysis.measures import SCHEMES
from rpexplore.figures import accuracy as curves
from tests.analysis.schemes import of_schemes
from tests.published import figures as published


@pytest.fixture(scope="module")
def cps():
    return of_schemes(published.workload("CPS", "<=3"))


def test_distribution_functions_are_steps(cps):
    frame = distribution_functions(errors_by_plan(cps))
    figure = curves.shares_of_tables(frame, "people")
    assert [trace.name for trace in figure.data] == list(SCHEMES)
    for number, trace in enumerate(figure.data):
        rows = frame.loc[frame["group"] == number]
        assert list(trace.x) == rows["standard_error"].tolist()
        assert list(trace.y) == rows["share"].tolist()
        assert trace.line.shape == "hv"
    assert figure.layout.xaxis.type == "log"
    assert 10 ** figure.layout.xaxis.range[0] < frame["standard_error"].min()
    assert 10 ** figure.layout.xaxis.range[1] > frame["standard_error"].max()


def test_series_differ_in_dash_as_well_as_colour(cps):
    figure = curves.shares_of_tables(distribution_functions(errors_by_order(cps[0])), "people")
    assert len({trace.line.dash for trace in figure.data}) == 4
    assert len({trace.line.color for trace in figure.data}) == 4


def test_the_numbers_by_order_end_with_all_tables(cps):
    frame = curves.distribution_by_order_chart(cps[0], "people").frame
    assert frame["series"].tolist()[-1] == "all tables"
    *by_order, total = frame["tables"].tolist()
    assert total == sum(by_order) == len(cps[0].workload)
    assert frame["median"].tolist()[-1] == np.median(cps[0].standard_errors)


def test_shares_are_in_percent(cps):
    axis = curves.shares_of_tables(
        distribution_functions(errors_by_plan(cps)), "people"
    ).layout.yaxis
    assert list(axis.ticktext) == ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]
    assert axis.range[0] < 0
    assert axis.range[1] > 1


def test_size_does_not_grow_with_the_tables():
    domain = rp.Domain.from_sizes({f"a{i}": 2 + i for i in range(40)})
    schemes = of_schemes(rp.Workload.all_up_to(domain, 3))
    frame = distribution_functions(errors_by_plan(schemes))
    assert len(curves.shares_of_tables(frame, "people").to_json()) < 60_000


def test_user_text_is_not_read_as_markup(cps):
    figure = curves.shares_of_tables(distribution_functions(errors_by_plan(cps)), "<i>x</i>")
    assert "<i>" not in figure.layout.xaxis.title.text
