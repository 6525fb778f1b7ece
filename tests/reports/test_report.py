"""The report: complete, correct, in one file, and closed to the network and to hostile names."""

import base64
import getpass
import hashlib
import io
import json
import re
import socket
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.analysis.accuracy import headline, least_accurate_first
from rpexplore.analysis.glossary import GLOSSARY
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.readings import READINGS, SMOOTH_COVERAGE
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.variances import TableVariances
from rpexplore.planning.pilot import pilot_plan, with_pilot
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.bundle import contents_of
from rpexplore.reports.report import html, report
from rpexplore.reports.section import Facts, Numbers
from rpexplore.results.rehearsal import rehearse_smooth_tables
from rpexplore.scenarios.workload_changes import for_smooth_tables
from rpexplore.workload.smooth_weights import PairDependence
from rpexplore.workload.table_text import workload_from_csv
from tests.reports.reports import Page, html_of, page_of, plan_of, report_of
from tests.reports.scenarios import HOSTILE, SCENARIOS, survey
from tests.support.processor_time import at_most

nightly = pytest.mark.nightly


@pytest.fixture(scope="module")
def hostile() -> Page:
    return page_of("hostile")


@pytest.fixture(scope="module")
def groups() -> Page:
    return page_of("groups")


# ---- what it says


@pytest.mark.parametrize(("noun", "whom"), [("records", "households"), ("flats", "flats")])
def test_the_forecast_is_of_what_a_record_is_else_of_who_is_protected(noun, whom):
    tables = rp.Workload.all_of_order(rp.Domain.from_sizes({"age": 3}), 1)
    budget = rp.Budget(rho="0.5", max_records_per_person=2, unit_noun="household")
    plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=budget)
    made = str(report(plan, record_noun=noun, expected=ExpectedCounts.of_total(900)))
    assert {*re.findall(r"of (\w+) in good cells", made)} == {whom}


BY_DAY = {"groups", "hostile", "own", "targets", "hostile basis_choices"}


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "name",
    [name if name in BY_DAY else pytest.param(name, marks=nightly) for name in SCENARIOS],
    ids=str,
)
def test_every_scenario_has_a_report_that_reads_well(name):
    # Without the braces that are in names and values themselves.
    text = re.sub(r"\{(braces|x)\}", "", page_of(name).text)
    assert "nan" not in text
    assert "None" not in re.sub(r"None( is added|, as long)", "", text)
    assert not re.search(r"[{}]\s|\bTrue\b|\bFalse\b|\bFraction\b|\bnp\.", text)


def test_what_a_board_decides_comes_first_and_the_label_next(groups):
    headings = [text for tag in ("h1", "h2") for _, text in groups.all(tag)]
    assert headings[:4] == ["Scenario 1", "In short", "Questions and decision", "Privacy label"]
    plan = plan_of("groups")
    assert plan.sha256 in groups.text
    assert "ρ = 0.1 of zero-concentrated differential privacy" in groups.text


def test_the_first_page_lists_the_attributes_in_use_only():
    made = report_of("narrowed")
    assert made.front[0].parts[0].rows[0][1] == (
        "3 noisy tables with 66 cells, which count records. 3 attributes: age, sex, region."
    )
    assert "tables over 3 attributes with noise" in made.subtitle


@pytest.mark.nightly
def test_a_survey_and_a_scenario_of_one_name_are_named_once():
    made = report(plan_of("groups"), survey="Ages", name="Ages ")
    assert (made.title, made.head) == ("Ages", "Ages")
    assert made.subtitle.startswith("A plan to release")


def test_a_margin_has_the_same_digits_everywhere(groups):
    top = headline(plan_of("groups"))
    for margin in (top.median_margin, top.largest_margin):
        assert len(re.findall(rf"±{re.escape(rounded(margin, 3))}\b", groups.text)) == 3


def test_sections_are_listed_and_numbered(groups):
    sections = [text for attrs, text in groups.all("section") if attrs.get("id")]
    links = [attrs["href"] for attrs, _ in groups.all("a") if attrs["href"].startswith("#")]
    assert len(sections) == len(links) == 13
    ids = {attrs["id"] for _, attrs, _ in groups.elements if "id" in attrs}
    assert {link[1:] for link in links} <= ids


def test_the_numbers_are_those_of_the_plan():
    plan = plan_of("groups")
    (least_accurate,) = (
        part
        for section in report_of("groups").sections
        for part in section.parts
        if isinstance(part, Numbers) and "least accurate first" in part.title
    )
    order = np.argsort(-plan.standard_errors, kind="stable")[:20]
    assert least_accurate.frame["standard_error"].tolist() == plan.standard_errors[order].tolist()
    cells = [f"{n:,}" for n in plan.workload.exact_cells[order]]
    assert [row[1] for row in least_accurate.rows] == cells


def test_missed_targets_come_with_a_sufficient_budget():
    scenario = SCENARIOS["targets"]
    plan = plan_of("targets")
    text = page_of("targets").text
    met = int(np.sum(plan.standard_errors <= plan.workload.targets))
    assert f"{met} of {len(plan.workload)} targets are met." in text
    (rho,) = re.findall(r"with the same objective takes ρ = ([0-9.]+)", text)
    enough = replace(scenario, budget=rp.Budget(rho=rho)).table_plan()
    assert np.all(enough.standard_errors <= plan.workload.targets * (1 + 1e-9))
    little = replace(scenario, budget=rp.Budget(rho=float(rho) * 0.999)).table_plan()
    assert not np.all(little.standard_errors <= plan.workload.targets)
    assert "A plan whose objective is the targets themselves" not in text


def test_readings_of_the_release_are_weighed_and_rehearsed():
    plan, scenario = plan_of("up to"), SCENARIOS["up to"]
    expected = ExpectedCounts.of_total(900)
    rehearsal = rehearse_smooth_tables(plan, expected)
    page = Page(html(contents_of(plan, scenario, rehearsal)))
    for reading in READINGS.values():
        assert f"Publish them {reading.use}." in page.text
    assert SMOOTH_COVERAGE in page.text
    assert rehearsal.describe("records") in page.text
    assert rehearsal.caution in page.text
    rows = [text for _, text in page.all("tr")]
    last = rehearsal.frame.iloc[-1]
    assert any(describe_share(last["smooth"]) in row for row in rows)
    # Without one it says how to make it; with the weights for smooth tables, what they do.
    other = replace(scenario, expected=expected)
    smoothed = for_smooth_tables(other)
    text = Page(html(contents_of(smoothed.table_plan(), smoothed))).text
    assert "Not made. With expected counts" in text
    assert f"{smoothed.request.smooth_weights.text}, are in effect" in text
    # From a first release it says whose figures were looked at.
    pairs = PairDependence(("1a2b",), scenario.domain.names, ((0, 1, 0.3),))
    weights = replace(smoothed.request.smooth_weights, pairs=pairs)
    second = for_smooth_tables(other, weights)
    text = Page(html(contents_of(second.table_plan(), second))).text
    assert f"Its weights follow from {pairs.text}: noisy figures, spent before." in text
    assert "intervals of the combined unbiased counts hold nearly" in text
    with pytest.raises(PlanError, match="The simulation is of another plan"):
        contents_of(plan_of("groups"), SCENARIOS["groups"], rehearsal)


def test_a_pilot_is_told_and_that_its_cost_is_a_part_of_what_is_booked():
    """The privacy beside it is that of the tables alone: the run was charged for the whole plan."""
    whole = with_pilot(plan_of("up to"), "20%")
    tables = whole.part("tables")
    pilot = pilot_plan(tables, whole.sha256).alone
    for plan, told in (
        (tables, "A pilot measures the one-way"),
        (pilot, "whose whole cost is boo"),
    ):
        assert told in str(report(plan))
    assert "A pilot" not in str(report(plan_of("up to")))


def test_without_targets_it_says_so():
    assert "No table was given a target" in page_of("up to").text


def test_what_verify_finds_is_in_it(groups):
    for check in rp.verify(plan_of("groups")).checks:
        assert check.finding in groups.text


def test_a_plan_that_does_not_hold_is_not_reported_on():
    plan = plan_of("up to")
    half = plan.mean_variances * 0.5
    wrong = replace(plan, table_variances=TableVariances(half, half, half))
    with pytest.raises(PlanError, match="does not hold what it claims"):
        report(wrong)


def test_every_value_of_every_attribute_is_listed():
    appendix = report_of("up to").sections[-2].parts[0]
    assert isinstance(appendix, Facts)
    texts = dict(appendix.rows)
    assert texts["region"] == "; ".join(f"R{i:02}" for i in range(12))
    assert texts["sex"] == "F (Female); M (Male)"
    assert texts["income"] == "; ".join(survey()["income"].labels())
    assert texts["age"] == "whole numbers 0 to 99, in groups of 5"
    codebook = next(one for one in report_of("up to").sections if one.heading == "Codebook")
    assert "states 1 impossible combination: age=0..14 income=1000.5..;" in codebook.sentences[-1]


def test_the_report_ends_with_the_glossary(groups):
    sections = [text for attrs, text in groups.all("section") if attrs.get("id")]
    assert all(text in sections[-1] for terms in GLOSSARY.values() for text in terms.values())


def test_what_is_too_long_is_left_out_with_a_word():
    values = rp.Categories(tuple(f"v{i}" for i in range(6000)))
    domain = rp.Domain((rp.Attribute("many", values), rp.Attribute("few", rp.Categories(("a",)))))
    plan = plan_tables(
        rp.Workload.all_up_to(domain, 1), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
    )
    text = Page(html(report(plan))).text
    assert "6,000 values, too many to list here" in text
    assert "v0; v1; v2; v3; and 5,996 more" in text


def test_the_checklist_has_every_point_of_the_guidelines(groups):
    points = [text for attrs, text in groups.all("th") if attrs.get("scope") == "row"]
    for word in (
        "parameters",
        "Unit",
        "releases",
        "Mixing",
        "Mechanism",
        "Sensitivity",
        "Floating point",
        "Utility",
        "Systemic bias",
        "Human bias",
        "Statistical bias",
        "Query model",
        "Trust model",
        "Side channels",
        "access control",
        "data collection",
    ):
        assert any(word in point for point in points), word


# ---- what it is


def test_the_same_plan_gives_the_same_report():
    scenario, again = SCENARIOS["groups"], TablePlan.parse(plan_of("groups").text)
    assert html(contents_of(again, scenario)) == html_of("groups")


def test_it_names_nothing_of_this_machine(groups):
    text = groups.text
    assert str(Path.cwd()) not in text
    assert str(Path.home()) not in text
    for name in {socket.gethostname(), getpass.getuser()} - {"root"}:  # as in "square root"
        assert not re.search(rf"\b{re.escape(name)}\b", text)
    assert str(time.gmtime().tm_year) not in re.sub(
        r"2025\.|NeurIPS \d+|ICML \d+|July \d+", "", text
    )


def test_it_asks_nobody_for_anything(hostile):
    for tag, attrs, _ in hostile.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form", "img")
        for name, value in attrs.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "action", "srcset", "data"):
                assert value.startswith(("#", "data:text/csv")), (tag, name, value)
    style = "".join(text for _, text in hostile.all("style"))
    assert "url(" not in style
    assert "@import" not in style


def test_the_running_head_has_the_name_as_it_is():
    name = 'Up to 2-way, by “age” \\ " é'
    page = Page(html(replace(report_of("up to"), head=name)))
    (text,) = re.findall(r'@top-left \{ content: "(.*)"; \}', page.all("style")[0][1])
    read = re.sub(r"\\([0-9a-f]{1,6})\s", lambda code: chr(int(code[1], 16)), text)
    assert read == name


def test_only_its_own_scripts_may_run(hostile):
    (policy,) = (
        attrs["content"]
        for attrs, _ in hostile.all("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    runs = [text for attrs, text in hostile.all("script") if "type" not in attrs]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in runs]
    assert rules["script-src"].split() == [f"'sha256-{text}'" for text in hashes]
    assert len(runs) == 2


def test_hostile_names_are_shown_and_do_nothing(hostile):
    assert [text for _, text in hostile.all("h1")] == [HOSTILE[0]]
    assert "onerror=alert(1)" in hostile.text
    for name in HOSTILE:
        assert " ".join(name.split()) in hostile.text
    (figures,) = (text for attrs, text in hostile.all("script") if "type" in attrs)
    assert "<" not in figures
    assert len(json.loads(figures)) == len(report_of("hostile").charts)


def test_every_chart_has_caption_alternative_text_and_numbers(groups):
    charts = [attrs for attrs, _ in groups.all("div") if attrs.get("role") == "img"]
    contents = report_of("groups").charts
    assert len(charts) == len(contents) >= 5
    assert [int(attrs["data-chart"]) for attrs in charts] == list(range(len(charts)))
    captions = [text for _, text in groups.all("figcaption")]
    for chart, attrs, caption in zip(contents, charts, captions, strict=True):
        assert attrs["aria-label"] == chart.alternative_text
        assert len(chart.alternative_text) > 40
        assert len(caption) > 20
        assert any(chart.subject in text for _, text in groups.all("table"))


def test_all_tables_are_a_download_that_can_be_planned_again(groups):
    (link,) = (attrs for attrs, _ in groups.all("a") if attrs.get("download") == "tables.csv")
    text = base64.b64decode(link["href"].partition("base64,")[2]).decode()
    plan = plan_of("groups")
    read = workload_from_csv(plan.workload.domain, text, "tables.csv")
    assert np.array_equal(read.weights, plan.workload.weights)
    errors = pd.read_csv(io.StringIO(text))["standard_error"].to_numpy()
    rows = least_accurate_first(plan)
    assert errors == pytest.approx(plan.standard_errors[rows], rel=1e-12)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("order", [0, 1])
def test_the_smallest_plans_have_reports(order):
    plan = plan_tables(
        rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 1}), order),
        loss=rp.MaxVariance(),
        budget=rp.Budget(rho=1),
    )
    text = Page(html(report(plan))).text
    assert f"{order + 1} table" in text


@pytest.mark.nightly
def test_a_table_of_very_many_cells_has_a_report():
    domain = rp.Domain.from_sizes(dict.fromkeys("abcdef", 10**6))
    workload = rp.Workload.of(domain, ["a", tuple("abcdef")])
    plan = plan_tables(workload, loss=rp.SumOfVariances("sqrt"), budget=rp.Budget(rho=1))
    assert "about 10^36 cells" in Page(html(report(plan))).text


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n_attributes", "n_tables"), [(32, "5,489"), pytest.param(60, "36,051", marks=nightly)]
)
def test_very_many_tables_fit_into_one_report(n_attributes, n_tables):
    domain = rp.Domain.from_sizes({f"a{i:02}": 10 for i in range(n_attributes)})
    workload = rp.Workload.all_up_to(domain, 3).with_weights({("a00", "a01"): 3.0})
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    with at_most(30):
        text = html(report(plan))
    assert len(text.encode()) < 8_000_000
    page = Page(text)
    assert f"The list of all {n_tables} tables is too long for this document" in page.text
    assert not [attrs for attrs, _ in page.all("a") if attrs.get("download") == "tables.csv"]


def test_public_counts_give_a_forecast():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    plan = plan_tables(
        rp.Workload.all_up_to(domain, 2), loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1")
    )
    made = report(plan, expected=ExpectedCounts.of_total(500))
    forecast = rp.Forecast(plan, expected=500)
    (section,) = [each for each in made.sections if each.heading == "Forecast"]
    assert section.sentences[0] == forecast.describe()
    head, says = made.front[0].parts[0].rows[1]
    assert head.startswith("Forecast: ")
    assert says.startswith(forecast.describe())
    strict = report(plan, expected=ExpectedCounts.of_total(500), cv_limit=0.05)
    assert rp.Forecast(plan, expected=500, limit=0.05).describe() in html(strict)
    assert "Forecast" not in [each.heading for each in report(plan).sections]
    kept = report(forecast.in_plan())
    assert [each.heading for each in kept.sections].count("Forecast") == 1
    assert kept.front[0].parts[0].rows[1][0] == head


def test_public_counts_that_no_longer_fit_are_named():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    plan = plan_tables(
        rp.Workload.all_up_to(domain, 2), loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1")
    )
    made = report(plan, expected=ExpectedCounts(("no",), (("1",),), (5.0,)))
    assert "no attribute 'no'" in made.front[0].parts[0].rows[1][1]
