"""Odd texts in every field for text or numbers of every page: a sentence at most, no traceback.

Some of one scene of each page in `make test`, every text in every field in `make test-all`.
"""

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.planner import plan_tables
from rpexplore.scenarios.scenario import Scenario
from tests.attacks.malformed import ODD_TEXTS
from tests.pages.conftest import App, choose_objective, plain

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
TEXTS = [
    *ODD_TEXTS, "\x00", "/tmp/a\x00b", "/" + "y" * 5000, "y/" * 2500, "1e999", "1e400", "1e155",
    "1e-155", "1,000", "1.000,5", "\u200f12", "\u202e12", "~nobody/x", "~", "//", "'/'",
    "$HOME", "file:///etc/passwd", "http://127.0.0.1:1/x", "CON", "a" * 300, "=" * 3000, "=cmd()",
    "(" * 3000, "[" * 3000, "!" * 3000, "age 0..99999999999999999999", "0.1 " * 2000, "9" * 5000,
]  # fmt: skip
BY_DAY = 2  # texts of each page

# What a message never has: Python's own words.
PYTHON = re.compile(
    r"Traceback|Errno|\b[A-Za-z]*(Error|Exception)\b|<class|unexpectedly|0x[0-9a-f]{6}"
)
Scene = Callable[[App], object]


def choose(key: str, value: str) -> Scene:
    """Set what an element without a text is at."""

    def scene(session: App) -> None:
        session.test.session_state[key] = value
        session.run()

    return scene


def bins(how: str) -> Scene:
    return lambda session: (session.unfold("one attribute"), choose("how to bin age", how)(session))


def new_attribute(session: App) -> None:
    session.press("Add an attribute").unfold("one attribute")
    session.selectbox(key="attribute shown").set_value("attribute_4").run()


def many_at_once(session: App) -> None:
    session.show("workload", "weights")


def own_list(session: App) -> None:
    session.radio(key="kind").set_value("listed").run()


def basis(kind: str) -> Scene:
    def scene(session: App) -> None:
        session.show("workload", "aggregation")
        session.selectbox(key="attribute to change").set_value("age").run()
        session.selectbox(key="kind of all age").set_value(kind).run()

    return scene


def objective(loss: str) -> Scene:
    return lambda session: choose_objective(session, loss)


def what_if(session: App) -> None:
    session.show("tradeoffs", "What if")
    choose("what_if", "boost")(session)


def records_from(source: str) -> Scene:
    return lambda session: session.radio(key="source").set_value(source).run()


def results(session: App) -> None:
    """Of a release that lies where the app runs."""
    domain = rp.Domain.from_sizes({"age": 3, "sex": 2})
    plan = plan_tables(
        rp.Workload.all_up_to(domain, 1), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
    )
    Path("data").mkdir(exist_ok=True)
    pd.DataFrame({"age": [0, 1], "sex": [0, 1]}).to_csv("data/records.csv", index=False)
    if not Path("results").exists():
        rp.release(plan, "data/records.csv", "results")
    session.text_input(key="results folder").set_value("results").run()
    for _ in range(40):
        if session.text_area:
            return
        session.run()


# {what: (page, what is done there before, buttons to press after)}
SCENES: dict[str, tuple[str, Scene, tuple[str, ...]]] = {
    "codebook": ("codebook", bins("Equal widths"), ("Use these bins",)),
    "own edges": ("codebook", bins("Own edges"), ("Use these bins",)),
    "split": ("codebook", bins("Split"), ("Use these bins",)),
    "typed codebook": ("codebook", choose("codebook source", "Typed in"), ("Use this codebook",)),
    "columns": ("codebook", choose("codebook source", "A file"), ()),
    "categories": ("codebook", new_attribute, ("Use these categories",)),
    "own list": ("workload", own_list, ()),
    "many tables": ("workload", many_at_once, ("Set for",)),
    "hierarchy": ("workload", basis("hierarchy"), ()),
    "rho": ("plan", choose("unit", "rho"), ()),
    "epsilon": ("plan", choose("unit", "epsilon"), ()),
    "slack": ("plan", objective("bounded"), ()),
    "power": ("plan", objective("p-norm"), ()),
    "target": ("plan", objective("max relative to target"), ("Set this target",)),
    "wanted error": ("tradeoffs", choose("tradeoffs", "Smaller errors"), ("Use this budget",)),
    "what if": ("tradeoffs", what_if, ("Apply",)),
    "scenarios": ("scenarios", lambda session: None, ()),
    "queries": ("queries", lambda session: None, ("Add to the list",)),
    "sample": ("release", lambda session: None, ("Dry run",)),
    "path": ("release", records_from("A file or folder on this computer"), ()),
    "database": ("release", records_from("A table of a database"), ()),
    "results": ("results", results, ("Combine them", "Make the processed")),
}


@pytest.fixture
def with_counts(small) -> Scenario:
    return small.replaced(expected=ExpectedCounts.of_total(1e6))


def fields(session: App) -> dict[str, object]:
    """The fields for text of the page that is open, by their keys."""
    return {field.key: field for kind in ("text_input", "text_area") for field in session.get(kind)}


def check(session: App, text: str = "") -> None:
    assert not session.exception, (text, session.exception[0].stack_trace)
    for kind in ("error", "warning", "info", "success"):
        for message in session.texts(kind):
            said = plain([message]).replace(text, "")
            assert not PYTHON.search(said), (text, said)
            assert len(said) < 9000, (text, said)  # a path stands there in full, once


def enter(session: App, keys: list[str], text: str, buttons: tuple[str, ...]) -> None:
    for key in keys:
        field = fields(session)[key]
        limit = field.proto.max_chars  # which a browser keeps
        field.set_value(text[:limit] if limit else text)
    check(session.run(), text)
    for label in buttons:
        if any(b.label.startswith(label) and not b.disabled for b in session.button):
            check(session.press(label), text)


def by_day() -> set[str]:
    """The last scene of each page."""
    return set({page: scene for scene, (page, *_) in SCENES.items()}.values())


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "scene",
    [
        scene if scene in by_day() else pytest.param(scene, marks=pytest.mark.nightly)
        for scene in SCENES
    ],
)
def test_an_odd_text_gives_a_sentence_at_most(scene, app, with_counts):
    page, prepare, buttons = SCENES[scene]

    def fresh() -> App:
        session = app(page, with_counts)
        prepare(session)
        check(session)
        return session

    session = fresh()
    keys = list(fields(session))
    assert keys
    if not NIGHTLY:
        for text in random.Random(scene).sample(TEXTS, BY_DAY):
            enter(session, [key for key in keys if key in fields(session)], text, buttons)
        return
    for key in keys:
        for text in TEXTS:
            if key not in fields(session):
                session = fresh()
            if key in fields(session):  # some are named for what is drawn
                enter(session, [key], text, buttons)
