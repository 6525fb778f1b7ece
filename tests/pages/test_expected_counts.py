"""Expected counts beside the codebook."""

import gc
import weakref
from dataclasses import replace

import pytest

import rpexplore as rp
from pages.components.shared.expected_counts import drawn_once
from rpexplore.analysis import drawn_counts
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTables
from rpexplore.domain.survey import SurveyDesign
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.bases import Windows
from tests.pages.conftest import plain

MARGIN = (
    b"sex,region,count\n"
    + "".join(
        f"{sex},{region},{100 * region}\n" for sex in range(2) for region in range(5)
    ).encode()
)

FACTS = b"# name: Register\n# date: 2019\n# source: the office\n"


def test_public_tables_are_added_edited_and_removed_and_bad_ones_refused(app, small):
    session = app("codebook", small)
    assert "already public" in plain(session.texts("info"))
    session.text_input(key="expected total").set_value("2000").run()
    assert session.scenario.expected == ExpectedCounts.of_total(2000)
    # A file, which says where it is from.
    session.file_uploader(key="expected margin").upload("margin.csv", MARGIN[:-8]).run()
    assert "margin.csv: 1 row of 10 missing" in plain(session.texts("error"))
    lacking = MARGIN.replace(b"1,4,", b"1,9,")
    session.file_uploader(key="expected margin").upload("other.csv", lacking).run()
    assert "other.csv: Line 11: 'region' has no value '9'" in plain(session.texts("error"))
    assert session.scenario.public == ()
    session.file_uploader(key="expected margin").upload("m.csv", FACTS + MARGIN).run()
    (table,) = session.scenario.public
    assert table.citation == "Register (2019; the office)"
    assert "Register (2019; the office)**: by sex × region" in plain(session.texts("markdown"))
    # A one-way margin that is missing is one click away, and typed into a grid.
    assert "Add sex" not in [button.label for button in session.button]
    session.press("Add age")
    session.type_in_grid("counts of public table", 0, "count", "-5").press("Add the table")
    assert "The count of age = 0 must be at least 0, got -5" in plain(session.texts("error"))
    assert len(session.scenario.public) == 1
    for row in range(10):
        session.type_in_grid("counts of public table", row, "count", "10" if row else "15")
    fields = {field.label: field for field in session.text_input}
    fields["Name"].set_value("Census")
    fields["Date"].set_value("2021")
    session.toggle[0].set_value(True)
    session.press("Add the table")
    assert [one.citation for one in session.scenario.public][1] == "Census (2021; shares)"
    assert session.scenario.public[1].counts.counts == (15.0, *[10.0] * 9)
    assert session.scenario.public_tables.n_records == 2000
    # Totals of another year are refused, contradictions are named.
    session.text_input(key="expected total").set_value("5000").run()
    assert "more than 10 % apart" in plain(session.texts("error"))
    session.file_uploader(key="expected margin").upload("sex.csv", b"sex,count\n0,900\n1,1100\n")
    session.run()
    assert "contradict each other by sex" in plain(session.texts("warning"))
    for _ in range(3):
        session.press("Remove")
    session.text_input(key="expected total").set_value("").run()
    assert session.scenario == small


def test_the_design_of_a_survey_is_typed_and_counts_beside_the_noise(app, small):
    session = app("codebook", small)
    session.text_input(key="design effect").set_value("1.8; region,sex=2.1").run()
    session.text_input(key="sampling fraction").set_value("7").run()
    design = SurveyDesign(1.8, ((("sex", "region"), 2.1),), 0.07)
    assert session.scenario.design == design
    assert session.text_input(key="design effect").value == "1.8; sex,region=2.1"
    assert session.text_input(key="sampling fraction").value == "7"
    session.text_input(key="weight cv").set_value("60").run()
    assert session.scenario.design.design_effect == 1.36
    assert session.scenario.design.of_tables == design.of_tables
    session.text_input(key="sampling fraction").set_value("170").run()
    assert "must be from 0 to 1" in plain(session.texts("error"))
    session.text_input(key="sampling fraction").set_value("").run()
    session.text_input(key="design effect").set_value("").run()
    assert session.scenario == small


@pytest.mark.nightly
def test_sessions_share_what_is_drawn_for_the_same_tables_as_long_as_one_needs_it():
    def drawn(size: int, total: int) -> DrawnCounts:
        tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": size, "b": 3}), 2)
        return drawn_once(tables, PublicTables(tables.domain, (), total), (total,))

    first = drawn(4, 900)
    assert drawn(4, 900) is first
    assert drawn(4, 800) is not first
    assert drawn(5, 900) is not first
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_tables_that_are_all_too_large_to_forecast_are_no_error(app, monkeypatch):
    monkeypatch.setattr(drawn_counts, "MOST_UNEVEN", 1)
    domain = rp.Domain.from_sizes({"age": 6})
    request = replace(
        WorkloadRequest.of(rp.Workload.of(domain, [("age",)])),
        basis_choices=(BasisChoice("age", Windows(3)),),
    )
    scenario = Scenario(domain, request, expected=rp.ExpectedCounts.of_total(1000))
    session = app("plan", scenario)
    assert "None of the tables can be forecast" in plain(session.texts("caption"))
    assert not session.error
