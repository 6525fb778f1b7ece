"""The report on an adaptive plan."""

import re
from dataclasses import replace

import pytest

import rpexplore as rp
from rpexplore.analysis.adaptive import NOTHING_PROMISED, RoundsForecast, when_to_choose
from rpexplore.common.text import describe_share
from rpexplore.domain.public_tables import PublicTables
from rpexplore.errors import PlanError
from rpexplore.planning.adaptive import adaptive_plan
from rpexplore.privacy.conversions import rho_text
from rpexplore.reports.report import html, report

DOMAIN = rp.Domain.from_sizes({"age": 20, "sex": 2, "region": 7})
PLAN = adaptive_plan(
    rp.Workload.all_of_order(DOMAIN, 3),
    budget=rp.Budget(rho="0.01", max_records_per_person=2),
    expected_records=5000,
)


def test_a_report_promises_privacy_alone_and_says_when_to_choose_such_a_plan():
    expected = rp.ExpectedCounts.of_total(5000)
    known = RoundsForecast.of(PLAN, PublicTables(PLAN.domain, (), 5000.0))
    people = known.first.people.text(describe_share)
    assert f"by that alone {people} of people are in good cells" in known.describe()
    made = report(PLAN, expected=expected)
    page = " ".join(re.sub("<[^>]+>", " ", html(made)).split())
    assert made.subtitle.startswith("A plan to release 1 table, adaptively, over 3 attributes")
    assert [section.heading for section in made.sections][1:4] == [
        "When to choose it", "What is measured, and when", "Tables",
    ]  # fmt: skip
    assert all(sentence in page for sentence in when_to_choose(known))
    assert f"{rho_text(PLAN.rho, 6)} of zero-concentrated differential privacy" in page
    assert "first plan, variances" in page
    assert made.front[0].parts[0].rows[1] == ("Accuracy", NOTHING_PROMISED)
    # What is said of plans whose accuracy is known.
    for claim in ("right on average.", "95 % intervals", "proven to be the best", "1.96"):
        in_label_and_sections = page[: page.index("Glossary", page.index("Appendix"))]
        assert claim not in in_label_and_sections.replace("not right on average.", "")


def test_a_report_without_expected_counts_or_with_others_says_that_little_is_known():
    assert "expected counts tell" in html(report(PLAN))
    others = rp.ExpectedCounts(("height",), (("1", "2"),), (5.0, 5.0))
    assert "Not known, as what is public does not fit" in html(report(PLAN, expected=others))


def test_a_plan_that_costs_more_than_it_says_has_no_report():
    with pytest.raises(PlanError, match="does not hold what it claims"):
        report(replace(PLAN, exact_privacy_cost=PLAN.exact_privacy_cost / 2))
