"""What each package imports, read from the syntax trees.

Planning never sees a record: that wall is stated here once, as what each package may import.
"""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rpexplore"

# What a package may import beside its own modules, `common` and `errors`.
_BELOW_PLANNING = {"workload", "privacy", "domain"}
_PARTS_OF_PLANNING = {
    "planning",
    "planning.losses",
    "planning.mechanism",
    "planning.solvers",
    "planning.areas",
}
_BELOW_SCENARIOS = {"planning.baselines", *_PARTS_OF_PLANNING, *_BELOW_PLANNING}
_BELOW_ANALYSIS = {"scenarios", *_BELOW_SCENARIOS}
_BELOW_REPORTS = {"analysis", "figures", *_BELOW_ANALYSIS}
_BELOW_RESULTS = {
    "releases",
    "releases.noise",
    "estimation",
    "data",
    "data.files",
    "data.engines",
    *_BELOW_SCENARIOS,
}
MAY_IMPORT = {
    "domain": set(),
    "privacy": set(),
    "workload": {"domain"},
    "planning.losses": _BELOW_PLANNING,
    "planning.mechanism": {"planning.losses", *_BELOW_PLANNING},
    "planning.solvers": {"planning.losses", "planning.mechanism", *_BELOW_PLANNING},
    "planning": {*_PARTS_OF_PLANNING, *_BELOW_PLANNING},  # areas are one kind of its parts
    "planning.areas": {*_PARTS_OF_PLANNING, *_BELOW_PLANNING},
    "planning.baselines": {*_PARTS_OF_PLANNING, *_BELOW_PLANNING},
    "scenarios": _BELOW_SCENARIOS,
    "analysis": _BELOW_ANALYSIS,
    "figures": {"analysis", "privacy"},
    "reports": _BELOW_REPORTS,
    "estimation": {"planning.mechanism", "domain"},
    # ---- above, nothing reads a record or draws noise; below, everything may ----
    "data": {"domain"},
    "data.files": {"data", "domain"},
    "data.engines": {"data", "domain"},
    "releases.noise": set(),
    "releases": _BELOW_RESULTS - {"releases"},
    "results": _BELOW_RESULTS - {"releases.noise"},
    "results.formats": {
        "results",
        "releases",
        "reports",  # whose sentences on privacy are said in other formats as well
        *_BELOW_REPORTS,
    },
}
MAY_IMPORT["cli"] = MAY_IMPORT["serving"] = {*MAY_IMPORT}
EVERYWHERE = {"common", "errors"}
RECORDS_AND_NOISE = {
    "data",
    "data.files",
    "data.engines",
    "releases.noise",
    "releases",
    "results",
    "results.formats",
}

# Random numbers come from one module and from the operating system.
NOISE_MODULE = "releases.noise.uniform"
# Of tokens and cookies that let a browser in, and of addresses that nobody can guess.
TOKEN_MODULES = {
    "cli.serve",
    *(f"serving.{name}" for name in ("accounts", "guard", "server", "streamlit_parts")),
}
ENTROPY = ["random", "secrets", "os.urandom", "os.getrandom"]

STREAMLIT_CHARTS = {
    "plotly_chart", "altair_chart", "vega_lite_chart", "line_chart", "bar_chart", "area_chart",
    "scatter_chart", "pyplot", "graphviz_chart", "pydeck_chart",
}  # fmt: skip

# Pages hold no mathematics.
BANNED_IN_PAGES = ["numpy", "scipy", "cvxpy", "math"]


def room_of(name: str) -> str | None:
    """The package of a module or of a name in it, "planning.losses" of "planning.losses.base.Loss".

    None if there is no such package.
    """
    parts = name.split(".")
    rooms = {*MAY_IMPORT, *EVERYWHERE}
    return next((room for n in (2, 1) if (room := ".".join(parts[:n])) in rooms), None)


def is_within(name: str, parent: str) -> bool:
    return name == parent or name.startswith(f"{parent}.")


def nodes_of(text: str, words: Collection[str]) -> Iterator[ast.AST]:
    """All nodes of a source text, if it has one of these words; else its statements alone.

    Nine nodes of ten are in expressions.
    """
    tree = ast.parse(text)
    if any(word in text for word in words):
        yield from ast.walk(tree)
        return
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, [])  # of `a if b else c` and lambdas: an expression
            left += inner if isinstance(inner, list) else []


def imported_names(text: str, package: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything imported anywhere in a source text.

    `package` is the dotted package that relative imports start from. `from a import b` gives
    "a.b", be b a module or a name in a. Imports by a constant string
    (`importlib.import_module("a")`) count like any other.
    """
    for node in nodes_of(text, ("import_module", "__import__")):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield node.lineno, alias.name
            case ast.ImportFrom():
                parents = package.split(".")
                base = parents[: len(parents) + 1 - node.level] if node.level else []
                for alias in node.names:
                    parts = [*base, node.module, alias.name]
                    yield node.lineno, ".".join(part for part in parts if part)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def module_attributes(text: str, words: Collection[str]) -> Iterator[tuple[int, str]]:
    """(line, "numpy.random") for every attribute of an imported module, whatever its alias.

    In a text with none of these words there are none that matter.
    """
    modules_by_alias, nodes = {}, list(nodes_of(text, words))
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                modules_by_alias[alias.asname or name] = name
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=alias)) if alias in modules_by_alias:
                yield node.lineno, f"{modules_by_alias[alias]}.{node.attr}"


def violations(module: str, text: str, package: str = "rpexplore") -> list[str]:
    """What the source `text` of rpexplore.`module` breaks, one sentence each."""
    room = room_of(module)
    if room is None:
        return [f"{module} is in no package of MAY_IMPORT"]
    allowed = {room, "errors"} if room in EVERYWHERE else {room, *MAY_IMPORT[room], *EVERYWHERE}
    imports = list(imported_names(text, package))
    problems = []
    for line, name in imports:
        if is_within(name, "streamlit") and room != "serving":
            problems.append(
                f"{module}:{line} imports streamlit, which belongs to app.py, pages/ and serving/"
            )
        # The version is the one name of the package itself that any module may read.
        if is_within(name, "rpexplore") and name != "rpexplore.__version__":
            other = room_of(name.removeprefix("rpexplore").lstrip("."))
            if other not in allowed:
                problems.append(f"{module}:{line} imports {name}, which {room} may not")
    attributes = module_attributes(text, ("random", "secrets"))
    for line, name in [*imports, *attributes]:
        if is_within(name, "numpy.random"):
            problems.append(f"{module}:{line} uses numpy.random")
        elif module not in {NOISE_MODULE, *TOKEN_MODULES} and any(
            is_within(name, banned) for banned in ENTROPY
        ):
            problems.append(f"{module}:{line} uses {name}: randomness belongs to {NOISE_MODULE}.py")
    return problems


def modules() -> Iterator[tuple[str, str, str]]:
    """(name without "rpexplore.", text, package) of every module that is not an `__init__`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        *parents, stem = path.relative_to(PACKAGE).with_suffix("").parts
        if stem != "__init__":
            yield (
                ".".join([*parents, stem]),
                path.read_text("utf-8"),
                ".".join(["rpexplore", *parents]),
            )


def test_packages_import_what_they_may():
    problems = [violation for module in modules() for violation in violations(*module)]
    assert not problems, "\n".join(problems)


def test_planning_may_reach_no_records_and_no_noise():
    """Through no go-between: what a package may import may not either."""
    planning = MAY_IMPORT.keys() - RECORDS_AND_NOISE - {"cli", "serving"}
    assert not [room for room in planning if MAY_IMPORT[room] & RECORDS_AND_NOISE]
    assert {other for room in planning for other in MAY_IMPORT[room]} <= planning


def test_pages_hold_no_mathematics():
    paths = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]
    assert len(paths) > 50
    problems = [
        f"{path.name}:{line} imports {name}"
        for path in paths
        for line, name in imported_names(path.read_text("utf-8"), "")
        if any(is_within(name, banned) for banned in BANNED_IN_PAGES)
    ]
    assert not problems, "\n".join(problems)


def test_charts_are_drawn_in_one_place():
    """Which gives each its sentence, its numbers and its pictures."""
    place, pages = ROOT / "pages/components/shared/charts.py", (ROOT / "pages").rglob("*.py")
    problems = [
        f"{path.name}:{node.lineno} draws by st.{node.attr}"
        for path in sorted(pages)
        if path != place
        for node in nodes_of(path.read_text("utf-8"), STREAMLIT_CHARTS)
        if isinstance(node, ast.Attribute) and node.attr in STREAMLIT_CHARTS
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("module", "text", "message"),
    [
        ("planning.table_plan", "from rpexplore.releases.ledger.ledger import Ledger", "may not"),
        ("planning.losses.base", "from rpexplore.planning import plan", "may not"),
        ("planning.losses.base", "from ..solvers import convex", "may not"),
        ("domain.domain", "def f():\n    from rpexplore.data.files import source", "may not"),
        (
            "planning.table_plan",
            "import importlib\nimportlib.import_module('rpexplore.cli')",
            "may not",
        ),
        ("common.files", "import rpexplore.privacy.budget", "may not"),
        ("planning.table_plan", "from rpexplore import TablePlan", "may not"),
        ("unheard_of", "", "in no package"),
        ("cli.main", "import streamlit as st", "streamlit"),
        ("cli.main", "from streamlit.web import bootstrap", "streamlit"),
        (NOISE_MODULE, "import numpy as np\nnp.random.default_rng()", "numpy.random"),
        (NOISE_MODULE, "from numpy import random", "numpy.random"),
        ("releases.manifest", "import random", "randomness belongs to"),
        ("releases.manifest", "from random import gauss", "randomness belongs to"),
        ("releases.manifest", "import secrets as s", "randomness belongs to"),
        ("releases.manifest", "import os\nos.urandom(8)", "randomness belongs to"),
        ("releases.manifest", "from os import urandom", "randomness belongs to"),
        ("releases.manifest", "import os as o\no.getrandom(8)", "randomness belongs to"),
    ],
)
def test_the_checker_tells_a_violation(module, text, message):
    problems = violations(module, text, f"rpexplore.{module}".rpartition(".")[0])
    assert problems
    assert all(message in violation for violation in problems)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (
            "planning.table_plan",
            "from rpexplore import __version__\nfrom .certificate import Certificate",
        ),
        ("planning.table_plan", "import numpy as np\nnp.linalg.norm([1])"),
        (
            "planning.solvers.p_norm",
            "from ..losses import base\nfrom rpexplore.errors import PlanError",
        ),
        ("releases.manifest", "from rpexplore.data import source"),
        (NOISE_MODULE, "import os\nos.urandom(8)"),
        ("errors", "import randomness, streamlitics"),
    ],
)
def test_the_checker_accepts_what_is_allowed(module, text):
    assert violations(module, text, f"rpexplore.{module}".rpartition(".")[0]) == []
