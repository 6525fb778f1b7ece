"""What holds on every page."""

import ast
import re
from pathlib import Path

import pytest

from pages.components.shared.session import escaped
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.scenarios.examples import EXAMPLES
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.query_definitions import stated_from_text
from tests.pages.conftest import HOSTILE, TITLES, App, some_or_all

ROOT = Path(__file__).parents[2]


@some_or_all("plan", "release")
def test_a_new_session_opens_on_the_sample_with_a_complete_plan_on_every_page(app, titles):
    session = app("home")
    assert session.title[0].value == TITLES["home"]
    household = EXAMPLES[0]
    assert session.scenario.domain == household.domain
    assert session.scenario.expected == household.expected  # so that the plan says what it is worth
    for page in session.pages(titles):
        assert not session.error, page
        assert not session.warning, page
        if page == "plan":
            assert session.metrics()["95 % margin of error, median table"] == "±26.4 people"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sizes", "order"),
    [
        pytest.param({"only": 1}, 0, marks=pytest.mark.nightly),
        ({"age": 1, "sex": 2}, 2),
        pytest.param({"a": 10**6, "b": 10**6}, 2, marks=pytest.mark.nightly),
    ],
)
def test_every_page_draws_extreme_codebooks(app, sizes, order):
    scenario = Scenario(
        Domain.from_sizes(sizes),
        WorkloadRequest(order=order),
        expected=ExpectedCounts.of_total(1e6),
    )
    session = app(scenario=scenario)
    for page in session.pages():
        assert not session.error, page
        assert "nan" not in [word for text in session.texts("caption") for word in text.split()]


@some_or_all("codebook", "plan", "release")
def test_every_page_draws_levels_amounts_and_weights(app, titles):
    ages = {"name": "age", "constraints": {"minimum": 0, "maximum": 29}, "levels": {"five": 5}}
    income = {"name": "income", "type": "number", "bounds": [0, 200000], "unit": "EUR"}
    sexes = {"name": "sex", "constraints": {"enum": ["F", "M"]}}
    weight = {"name": "w", "type": "number", "bounds": [0, 40], "weights": True}
    tables = (("sex",), ("age@five", "sex"), ("age", "income"), ("sex", "w"))
    domain = Domain.from_schema({"fields": [ages, income, sexes, weight]})
    session = app(scenario=Scenario(domain, WorkloadRequest("listed", listed=tables)))
    for page in session.pages(titles):
        assert not session.error, (page, session.error)


@pytest.mark.nightly
def test_every_page_says_why_there_is_no_plan(app):
    domain = Domain.from_sizes({f"a{i}": 10**6 for i in range(26)})
    request = WorkloadRequest("listed", listed=(domain.names,))
    session = app(scenario=Scenario(domain, request))
    without_plan = ("home", "codebook", "scenarios", "results")
    for page in session.pages():
        assert bool(session.error) == (page.partition(":")[0] not in without_plan), page


MARKS = ("**bold**", "$x$", "<b>", "<i>", "[a](", ":red[", "`x`")


def check_no_formatting(session: App) -> None:
    for kind in ("markdown", "caption", "error", "info", "warning", "success"):
        for text in session.texts(kind):
            assert not [mark for mark in MARKS if mark in text]
    assert "unsafe_allow_html" not in str(session.main)
    for chart in session.get("plotly_chart"):
        assert "<b>" not in chart.proto.spec
        assert "<i>" not in chart.proto.spec


@pytest.fixture
def hostile_everywhere(hostile) -> Scenario:
    """Attribute names full of formatting, with targets, public counts and queries about them."""
    about = Domain.from_sizes(dict.fromkeys(HOSTILE[:4], 3))
    conditions = ["`**bold**` = 0", "`$x$ $y$` = 1", "total"]
    lines = [
        f'"{name}": {condition} ± 3' for name, condition in zip(HOSTILE, conditions, strict=False)
    ]
    return hostile.with_group(GroupSetting((), target=4.0)).replaced(
        expected=ExpectedCounts.of_total(1e6), query_list=stated_from_text(about, "\n".join(lines))
    )


@some_or_all("codebook", "plan")
def test_user_text_is_never_formatting_and_never_in_the_address(app, hostile_everywhere, titles):
    session, bound = app(scenario=hostile_everywhere), set()
    names = hostile_everywhere.domain.names
    for page in session.pages(titles):
        if page == "tradeoffs: What if":
            session.multiselect(key="what if attributes").set_value([names[2]]).run()
            assert "tables with <b>a</b>" in " ".join(session.texts("caption")).replace("\\", "")
        check_no_formatting(session)
        widgets = [*session.selectbox, *session.multiselect, *session.get("button_group")]
        for widget in (widget for widget in widgets if widget.proto.query_param_key):
            bound.add(widget.proto.query_param_key)
            options = " ".join(str(option) for option in widget.options)
            assert not [name for name in names if name in options]
        assert {*session.query_params} <= {"project", "part", "queries"}
    # Choices of views and plans, which are named by the app.
    views = {"accuracy", "plan_shown", "curves", "average", "what_if"}
    assert bound == (views if titles == TITLES else set())


@pytest.mark.nightly
def test_user_text_is_no_formatting_among_bases_and_queries_about_another_codebook(
    app, hostile_everywhere
):
    session = app("workload", hostile_everywhere).show("workload", "aggregation")
    names = hostile_everywhere.domain.names
    for name in names:
        session.selectbox(key="attribute to change").set_value(name).run()
        session.selectbox(key=f"kind of all {name}").set_value("prefix").run()
        session.unfold(f"some {name}")
    assert not session.exception
    assert len(session.scenario.request.basis_choices) == len(names)
    check_no_formatting(session)
    session.scenario = hostile_everywhere.replaced(domain=Domain.from_sizes({"x": 2}))
    session.open("queries")
    assert session.metrics()
    check_no_formatting(session)


def test_escaped_text_reads_as_it_was_written():
    text = "a*b_c $x$ <b> [l](u) `c` # 1. :red[x]"
    assert re.sub(r"\\(.)", r"\1", escaped(text)) == text
    assert not re.search(r"(?<!\\)[*_$<>\[\]`#:]", escaped(text))


def test_addresses_in_texts_are_no_links():
    """A browser's Markdown makes a link of what these match, even where all signs are escaped."""
    text = "http://a.b/c HTTPS://a.b www.a.b me@a.b"
    read = escaped(text).replace("\\", "")
    assert not re.search(r"(?i)https?://[-.\w]|www\.|\w@\w", read)
    assert read.replace("\N{WORD JOINER}", "") == text


@pytest.mark.nightly
def test_every_page_says_what_comes_next(app):
    session = app()
    for page, following in {
        "codebook": "Tables",
        "workload": "Plan",
        "plan": "Release",
        "release": "Results",
        "fairness": "Trade-offs",
        "tradeoffs": "Scenarios",
        "scenarios": "Release",
    }.items():
        session.open(page)
        links = [link.proto.label for link in session.get("page_link")]
        links += [button.label for button in session.button]
        assert f"Next: {following}" in links, page


def test_nothing_is_lost_by_switching_pages(app, small):
    session = app("plan", small)
    session.text_input(key="typed budget").set_value("0.37").run()
    session.selectbox(key="objective").set_value("max").run()
    session.open("workload")
    session.number_input(key="order").set_value(1).run()
    before = session.scenario
    for page in reversed(TITLES):
        session.open(page)
    assert session.scenario == before
    session.open("plan")
    assert session.text_input(key="typed budget").value == "0.37"
    assert session.selectbox(key="objective").value == "max"


def test_sessions_do_not_see_each_other(app, small):
    first, second = app("plan", small), app("plan")
    first.text_input(key="typed budget").set_value("0.37").run()
    second.run()
    assert len(second.scenario.domain) == 11
    assert second.text_input(key="typed budget").value == "0.1"


# Since when runs are going, by their records, and the lock of that list; what a stop waits for.
SHARED = {
    "release_tasks.py": {"_going", "_lock"},
    "tasks.py": {"_kept"},
    "accounts.py": {"_ended"},  # digests of logins that were logged out
    "sessions.py": {  # numbers of sessions
        "_processors",
        "_place_numbers",
        "_places",
        "_lock",
        "_place",
        "_reading",
        "_numbers",
        "_of_work",
    },
}


def test_no_cache_is_shared_between_sessions():
    """Streamlit's caches are the server's, and so is whatever a module holds."""
    rooms = ("pages", "rpexplore/serving")
    paths = [ROOT / "app.py", *(path for room in rooms for path in (ROOT / room).rglob("*.py"))]
    assert len(paths) > 50
    for path in paths:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        assert "cache_data" not in text, path.name
        if "cache_resource" in text:
            of_a_session = [
                node.func.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and "scope='session'" in [ast.unparse(keyword) for keyword in node.keywords]
            ]
            n_caches = ast.unparse(tree).count("cache_resource")
            assert n_caches == of_a_session.count("cache_resource"), path.name
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


def test_a_decimal_comma_is_read_in_every_field(app, small):
    session = app("plan", small)
    session.text_input(key="typed budget").set_value("0,5").run()
    assert session.scenario.budget.rho == 0.5
    session.open("workload").show("workload", "weights")
    session.text_input(key="weight of many").set_value("1,5").run()
    session.press("Set for")
    assert set(session.scenario.workload.weights.tolist()) == {1.5}
    session.open("release")
    session.text_input(key="limit").set_value("2,5").run()
    assert session.metrics()["Budget limit"] == "ρ = 2.5"
    session.text_input(key="limit").set_value("1,000").run()
    assert "may mean 1000 or 1.000" in " ".join(session.texts("error")).replace("\\", "")
