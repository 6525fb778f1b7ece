"""What each page says about itself under its title."""

import pytest

from pages.components.shared.texts import EXPLANATIONS, QUESTION
from tests.pages.conftest import TITLES, plain


def folded(session):
    return next(box for box in session.expander if box.label == QUESTION)


@pytest.mark.nightly
def test_every_page_but_home_explains_itself_in_two_sentences(app):
    session = app()
    for page, title in TITLES.items():
        if page != "home":
            session.open(page)
            assert folded(session).proto.expanded, page
            assert EXPLANATIONS[title] in plain(session.texts("markdown")), page
            assert EXPLANATIONS[title].count(". ") == 1, page
            assert EXPLANATIONS[title].endswith("."), page


def test_a_folded_explanation_stays_folded_on_other_pages_until_it_is_opened(app):
    session = app()
    session.test.session_state["explanation of Data"] = False
    assert not folded(session.run()).proto.expanded
    assert not folded(session.open("results")).proto.expanded
    session.unfold("explanation of Results")
    assert folded(session.open("codebook")).proto.expanded
