"""The report on own counts, and on a plan of several parts."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.accuracy import accuracy_of, csv_of_accuracy
from rpexplore.analysis.queries import CountUsefulness
from rpexplore.cli.facts import plan_facts, plan_text
from rpexplore.common.text import rounded
from rpexplore.domain.public_tables import PublicTables
from rpexplore.planning.adaptive import adaptive_plan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.part_plan import COLUMNS
from rpexplore.planning.planner import plan_tables
from rpexplore.reports.report import Report, html, report
from rpexplore.reports.section import Facts, Numbers
from rpexplore.workload.query_definitions import stated_from_text
from tests.support.query_lists import query_plan

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2})
LARGER = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 3})
TEXT = """everybody: total ± 10
adults: age >= 2 ± 50
women: sex = 1 @ 2 % of 500
old men: age >= 8 & sex = 0 @ 3"""
EXPECTED = rp.ExpectedCounts.of_total(1000)


@pytest.fixture(scope="module")
def counts() -> QueryPlan:
    stated = stated_from_text(DOMAIN, TEXT)
    return query_plan(stated.queries, budget=rp.Budget(rho="0.02"))


@pytest.fixture(scope="module")
def parts(counts) -> tuple[Any, ...]:
    tree = rp.AreaTree.from_columns({"town": list("1234")})
    towns = rp.AreaWorkload.of_levels(tree, {"town": rp.Workload.all_up_to(DOMAIN, 1)})
    tables, budget = rp.Workload.all_up_to(DOMAIN, 2), rp.Budget(rho="0.02")
    return (
        plan_tables(tables, loss=rp.SumOfVariances(), budget=budget),
        plan_areas(towns, loss=rp.SumOfVariances(), budget=budget),
        counts,
        adaptive_plan(
            rp.Workload.all_of_order(LARGER, 3),
            budget=budget,
            expected_records=1000,
        ),
    )


def joined_plan(parts: tuple[Any, ...]) -> rp.Plan:
    budget = rp.Budget(rho=sum(Fraction(part.budget.rho) for part in parts))
    return rp.Plan(parts, budget, parts[0].version)


def text_of(made: Report) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html(made)).split())


def test_own_counts_have_a_report(counts):
    made = report(counts, expected=EXPECTED, record_noun="people")
    assert made.subtitle.startswith("A plan to release 4 own counts over 2 attributes")
    (front,) = made.front[0].parts
    assert isinstance(front, Facts)
    facts = {term: " ".join(sentences) for term, *sentences in front.rows}
    met = np.count_nonzero(counts.standard_errors <= counts.targets)
    assert facts["Targets"].startswith(f"{met} of 4 targets")
    median = rounded(1.959964 * float(np.median(counts.standard_errors)), 3)
    assert facts["Margin of error"].startswith(f"±{median} people for the median own count")
    (publishable,) = (text for term, text in facts.items() if term.startswith("Publishable"))
    useful = CountUsefulness.of(counts, PublicTables(counts.domain, (), EXPECTED.total), 0.2)
    assert publishable.startswith(useful.describe())
    headings = [section.heading for section in made.sections]
    assert headings[1:7] == [
        "Own counts", "Accuracy", "Baselines", "Relative errors", "Targets", "Unused budget",
    ]  # fmt: skip
    table = made.sections[2].parts[0]
    assert isinstance(table, Numbers)
    errors = counts.standard_errors
    furthest = int(np.argmax(errors / counts.targets))
    first = table.rows[0]
    assert first[:2] == [
        counts.queries.names[furthest],
        rounded(errors[furthest], 3, zeros=True),
    ]
    page = text_of(made)
    assert counts.proven in page
    assert "Fitness for use, a Gaussian mechanism for lists of counts with targets" in page
    assert "use less of the budget than others" in page
    assert "This rests on 1,000 records, of which nothing else is known." in page
    assert "Not known without expected counts." in text_of(report(counts))


def test_a_report_on_several_parts_says_once_what_they_have_in_common(parts):
    plan = joined_plan(parts)
    made = report(plan, expected=EXPECTED)
    headings = [section.heading for section in made.sections]
    assert headings[0] == "Budget by part"
    names = ("Tables", "Areas", "Own counts", "Adaptive tables")
    for name, part in zip(names, parts, strict=True):
        alone = [section.heading for section in report(part, expected=EXPECTED).sections]
        own = [
            heading.removeprefix(f"{name}: ")
            for heading in headings
            if heading.startswith(f"{name}: ")
        ]
        assert own == [heading for heading in alone if heading in own]
        assert "Proof" in own
    for common in ("Codebook", "Budget in context", "Versions and hashes", "Glossary"):
        assert headings.count(common) == 1
    shares = made.sections[0].parts[0]
    assert isinstance(shares, Numbers)
    assert shares.frame["share"].sum() == pytest.approx(1)
    page = text_of(made)
    assert "4 tables, 12 tables of 4 areas" not in page  # each in the words of its kind
    assert "all tables and own counts and the measurements" in page
    assert "1.96 standard errors to each side" in page
    assert "The adaptive tables: adaptive estimates, which are biased." in page
    assert [facts.title for facts in made.front[0].parts] == [*names, "All parts together"]


def test_a_plan_of_several_parts_has_one_frame(parts):
    plan = joined_plan(parts)
    frame = accuracy_of(plan)
    assert list(frame) == COLUMNS
    assert frame["part"].drop_duplicates().tolist() == ["tables", "areas", "counts", "rounds"]
    for part in parts:
        own, alone = frame[frame["part"] == part.kind], accuracy_of(part)
        assert own["item"].tolist() == alone["item"].tolist()
    assert csv_of_accuracy(plan).startswith("part,level,item,attributes,cells,areas,")
    facts = plan_facts(plan)
    assert facts["parts"].keys() == {"tables", "areas", "counts", "rounds"}
    assert facts["parts"]["counts"]["query_count"] == 4
    text = plan_text(plan, 1)
    assert all(str(part) in text for part in parts)
    assert "old men" in text
