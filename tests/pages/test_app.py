"""What holds on every page."""

import ast
import re
from pathlib import Path

import pytest

from pages.components.shared.session import escaped
from rpexplore.domain.domain import Domain
from rpexplore.scenarios.scenario import Scenario, WorkloadRequest

ROOT = Path(__file__).parents[2]
TITLES = {
    "codebook": "Codebook",
    "workload": "Tables",
    "plan": "Plan",
    "fairness": "Fairness",
    "tradeoffs": "Trade-offs",
    "scenarios": "Scenarios",
    "queries": "Queries",
    "release": "Export and release",
    "results": "Results",
}
PAGES = list(TITLES)


def test_a_new_session_opens_on_the_sample_with_a_complete_plan(app):
    session = app("codebook")
    assert session.title[0].value == "Codebook"
    assert session.scenario.domain.names[:2] == ("age", "sex")
    session.open("plan")
    assert session.metrics()["A cell of the median table"] == "±26 people"


def opened_pages(session):
    """The names of all pages, with the session open on each of them in turn."""
    for page, title in TITLES.items():
        session.open(page)
        assert session.title[0].value == title
        assert not session.exception, page
        yield page


def test_every_page_draws_the_sample(app):
    session = app()
    for page in opened_pages(session):
        assert not session.error, page
        assert not session.warning, page


@pytest.mark.parametrize(("sizes", "order"), [({"only": 1}, 0), ({"a": 10**6, "b": 10**6}, 2)])
def test_every_page_draws_extreme_codebooks(app, sizes, order):
    session = app(scenario=Scenario(Domain.from_sizes(sizes), WorkloadRequest(order=order)))
    for page in opened_pages(session):
        assert not session.error, page


def test_every_page_says_why_there_is_no_plan(app):
    domain = Domain.from_sizes({f"a{i}": 10**6 for i in range(26)})
    request = WorkloadRequest("listed", listed=(domain.names,))
    session = app(scenario=Scenario(domain, request))
    without_plan = ("codebook", "scenarios", "queries", "results")
    for page in opened_pages(session):
        assert bool(session.error) == (page not in without_plan), page


def test_user_text_is_never_formatting(app, hostile):
    session = app(scenario=hostile)
    for page in opened_pages(session):
        for kind in ("markdown", "caption", "error", "info", "warning"):
            for text in session.texts(kind):
                for mark in ("**bold**", "$x$", "<b>", "<i>", "[a](", ":red[", "`x`"):
                    assert mark not in text, page
        assert "unsafe_allow_html" not in str(session.main), page


def test_escaped_text_reads_as_it_was_written():
    text = "a*b_c $x$ <b> [l](u) `c` # 1. :red[x]"
    assert re.sub(r"\\(.)", r"\1", escaped(text)) == text
    assert not re.search(r"(?<!\\)[*_$<>\[\]`#:]", escaped(text))


def test_nothing_is_lost_by_switching_pages(app, small):
    session = app("plan", small)
    session.text_input(key="typed budget").set_value("0.37").run()
    session.radio(key="objective").set_value("max").run()
    session.open("workload")
    session.number_input(key="order").set_value(1).run()
    before = session.scenario
    for page in [*PAGES, *reversed(PAGES)]:
        session.open(page)
    assert session.scenario == before
    session.open("plan")
    assert session.text_input(key="typed budget").value == "0.37"
    assert session.radio(key="objective").value == "max"


def test_sessions_do_not_see_each_other(app, small):
    first, second = app("plan", small), app("plan")
    first.text_input(key="typed budget").set_value("0.37").run()
    second.run()
    assert len(second.scenario.domain) == 11
    assert second.text_input(key="typed budget").value == "0.1"


# Since when runs are going, by their records, and the lock of that list; what a stop waits for.
SHARED = {"run.py": {"_going", "_lock"}, "background.py": {"_kept"}}


def test_no_cache_is_shared_between_sessions():
    """Streamlit's caches are the server's, and so is whatever a module holds."""
    paths = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py")]
    assert len(paths) > 50
    for path in paths:
        tree = ast.parse(path.read_text("utf-8"))
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not used & {"cache_data", "cache_resource"}, path.name
        if path.parent in (ROOT, ROOT / "pages"):  # run anew for every session
            continue
        shared = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(node.value, ast.Dict | ast.List | ast.Set | ast.Call)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name) and target.id.islower()
        }
        assert shared <= SHARED.get(path.name, set()), path.name
