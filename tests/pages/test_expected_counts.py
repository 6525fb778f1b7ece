"""Expected counts beside the codebook."""

from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.survey import SurveyDesign
from tests.pages.conftest import plain

MARGIN = (
    b"sex,region,count\n"
    + "".join(
        f"{sex},{region},{100 * region}\n" for sex in range(2) for region in range(5)
    ).encode()
)


def test_public_counts_are_a_total_or_a_margin_and_a_bad_margin_is_refused(app, small):
    session = app("codebook", small)
    assert "already public" in plain(session.texts("info"))
    session.text_input(key="expected total").set_value("5000").run()
    assert session.scenario.expected == ExpectedCounts.of_total(5000)
    assert "5,000 in total, spread evenly" in plain(session.texts("markdown"))
    session.text_input(key="expected total").set_value("").run()
    assert session.scenario == small
    session.file_uploader(key="expected margin").upload("margin.csv", MARGIN[:-8]).run()
    assert len(session.error) == 1
    assert "margin.csv: 1 row of 10 missing" in plain(session.texts("error"))
    assert session.scenario == small
    session.file_uploader(key="expected margin").upload("margin.csv", MARGIN).run()
    expected = session.scenario.expected
    assert expected.attributes == ("sex", "region")
    assert expected.total == 2000
    assert "2,000 in total, by sex × region as published" in plain(session.texts("markdown"))
    assert session.text_input(key="expected total").value == ""
    session.press("Remove")
    assert session.scenario.expected is None


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
