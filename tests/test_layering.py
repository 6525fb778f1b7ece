"""The direction of imports, read from the syntax trees: a module imports from groups further left.

Left to right runs from what knows least to what knows most. Planning never sees a record, so
everything that touches data or noise stands to the right of everything that plans.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rpexplore"

# Each line is a group; a module imports only from lines above its own. "name.*" is a subpackage,
# whose modules may also import each other.
GROUPS = [
    ["errors"],
    ["exact", "home", "write", "words", "threads", "parallel", "normal", "conic"],
    ["target"],
    ["attribute"],
    ["codebook"],
    ["domain"],
    ["own_questions", "selection"],
    ["basis", "basis_file"],
    ["questions"],
    ["attribute_sets", "ways"],
    ["workload"],
    ["expected"],
    ["table_lists"],
    ["settings"],
    ["asking"],
    ["asking_text"],
    ["strategy"],
    ["closure", "privacy", "decimals", "strategy_cache"],
    ["cells"],
    ["budget", "losses", "accounting", "accuracy"],
    ["target_losses", "named_loss", "convex_losses", "own_loss"],
    ["table_variances"],
    ["solvers.*"],
    ["certificate", "strategy_search"],
    ["best_strategies", "dual_bounds"],
    ["solutions"],
    ["reach"],
    ["json_rows", "loss_json", "loss_text"],
    ["plan_file_asked"],
    ["plan_file"],
    ["plan"],
    ["bound_verification"],
    ["optimum", "verification"],
    ["planner", "request"],
    ["queries.*"],
    ["schema_change"],
    ["scenario"],
    ["study"],
    ["drafts"],
    ["analysis.*"],
    ["figures.*"],
    ["export.*"],
    # ---- planning ends here; below, records are read and noise is drawn ----
    ["envelope"],
    ["data.*", "sampling"],
    ["ledger"],
    ["ledger_frames", "overlaps"],
    ["measurement", "reconstruct", "release_readme", "new_folder", "manifest"],
    ["charge", "query_release_readme", "measured_file"],
    ["contributions"],
    ["release_folder", "query_release_folder"],
    ["release", "query_release", "release_size"],
    ["postprocess.*"],
    ["webapp_location"],
    ["cli.*"],
]
# What must not reach any of these, whatever stands between.
PLANNING = [
    "optimum",
    "planner",
    "request",
    "scenario",
    "study",
    "drafts",
    "analysis.*",
    "figures.*",
    "export.*",
]
RECORDS_AND_NOISE = {
    "data.*",
    "sampling",
    "ledger",
    "measurement",
    "measured_file",
    "contributions",
    "charge",
    "release_folder",
    "query_release_folder",
    "release",
    "query_release",
}

NOISE_MODULE = "sampling"
ENTROPY = ("random", "secrets", "os.urandom", "os.getrandom")
BANNED_IN_PAGES = ("numpy", "scipy", "cvxpy", "math")


def entry_of(name: str) -> str | None:
    """The entry of GROUPS that `name` belongs to, None if there is none.

    `name` is a module or a name in a module, without "rpexplore.": "plan", "plan.Plan",
    "solvers.newton".
    """
    head = name.partition(".")[0]
    listed = {entry for group in GROUPS for entry in group}
    return next((entry for entry in (head, f"{head}.*") if entry in listed), None)


def rank(entry: str) -> int:
    """How far right `entry` stands."""
    return next(i for i, group in enumerate(GROUPS) if entry in group)


def is_within(name: str, parent: str) -> bool:
    return name == parent or name.startswith(f"{parent}.")


def imported_names(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything imported anywhere in `tree`.

    `package` is the dotted package that relative imports start from. `from a import b` gives
    "a.b", be b a module or a name in a. Imports by a constant string
    (`importlib.import_module("a")`) count like any other.
    """
    for node in ast.walk(tree):
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


def module_attributes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, "numpy.random") for every attribute of an imported module, whatever its alias."""
    modules_by_alias = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                modules_by_alias[alias.asname or name] = name
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=alias)) if alias in modules_by_alias:
                yield node.lineno, f"{modules_by_alias[alias]}.{node.attr}"


def violations(module: str, text: str, package: str = "rpexplore") -> list[str]:
    """What the source `text` of rpexplore.`module` breaks, one sentence each."""
    entry = entry_of(module)
    if entry is None:
        return [f"{module} is in no group: add it to GROUPS in tests/test_layering.py"]
    tree = ast.parse(text)
    imports = list(imported_names(tree, package))
    found = []
    for line, name in imports:
        if is_within(name, "streamlit"):
            found.append(f"{module}:{line} imports streamlit, which belongs to app.py and pages/")
        # The version is the one name of the package itself that any module may read.
        if not is_within(name, "rpexplore") or name == "rpexplore.__version__":
            continue
        other = entry_of(name.removeprefix("rpexplore").lstrip("."))
        if other is None:
            found.append(f"{module}:{line} imports {name}, which is in no group")
        elif rank(other) >= rank(entry) and not (other == entry and entry.endswith(".*")):
            found.append(f"{module}:{line} imports {name}, which is not left of it")
    for line, name in [*imports, *module_attributes(tree)]:
        if is_within(name, "numpy.random"):
            found.append(f"{module}:{line} uses numpy.random")
        elif module != NOISE_MODULE and any(is_within(name, banned) for banned in ENTROPY):
            found.append(f"{module}:{line} uses {name}: randomness belongs to {NOISE_MODULE}.py")
    return found


def modules() -> Iterator[tuple[str, str, str]]:
    """(name without "rpexplore.", text, package) of every module but rpexplore/__init__.py."""
    for path in sorted(PACKAGE.rglob("*.py")):
        *parents, stem = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parents if stem == "__init__" else [*parents, stem])
        if name:
            yield name, path.read_text("utf-8"), ".".join(["rpexplore", *parents])


def package_of(module: str) -> str:
    return f"rpexplore.{module}".rpartition(".")[0]


def test_imports_point_left():
    found = [violation for module in modules() for violation in violations(*module)]
    assert not found, "\n".join(found)


def test_every_listed_module_exists():
    present = {entry_of(name) for name, _, _ in modules()}
    stale = [entry for group in GROUPS for entry in group if entry not in present]
    assert not stale, f"no such module, remove from GROUPS in tests/test_layering.py: {stale}"


def test_planning_stands_left_of_records_and_noise():
    assert max(map(rank, PLANNING)) < min(map(rank, RECORDS_AND_NOISE))


def test_planning_reaches_no_records_and_no_noise():
    """Followed through every import, so that no go-between can hide one."""
    reaches: dict[str | None, set[str | None]] = {}
    for module, text, package in modules():
        for _, name in imported_names(ast.parse(text), package):
            if is_within(name, "rpexplore"):
                other = entry_of(name.removeprefix("rpexplore").lstrip("."))
                reaches.setdefault(entry_of(module), set()).add(other)
    seen, waiting = set(), list(PLANNING)
    while waiting:
        entry = waiting.pop()
        if entry not in seen:
            seen.add(entry)
            waiting.extend(reaches.get(entry, ()))
    assert not seen & RECORDS_AND_NOISE


@pytest.mark.parametrize(
    "path", [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))], ids=lambda path: path.name
)
def test_pages_hold_no_mathematics(path):
    found = [
        f"{path.name}:{line} imports {name}"
        for line, name in imported_names(ast.parse(path.read_text("utf-8")), "")
        if any(is_within(name, banned) for banned in BANNED_IN_PAGES)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "text", "told"),
    [
        ("plan", "from rpexplore.release import Release", "not left of it"),
        ("plan", "from rpexplore import planner", "not left of it"),
        ("plan", "from .planner import optimal_plan", "not left of it"),
        ("closure", "import rpexplore.privacy", "not left of it"),
        ("solvers.newton", "from ..planner import optimal_plan", "not left of it"),
        ("domain", "def f():\n    from rpexplore.data.files import read", "not left of it"),
        ("plan", "import importlib\nimportlib.import_module('rpexplore.cli')", "not left of it"),
        ("plan", "from rpexplore import Plan", "in no group"),
        ("unheard_of", "", "add it to GROUPS"),
        ("cli", "import streamlit as st", "streamlit"),
        ("cli", "from streamlit.web import bootstrap", "streamlit"),
        ("sampling", "import numpy as np\nnp.random.default_rng()", "numpy.random"),
        ("sampling", "from numpy import random", "numpy.random"),
        ("release", "import random", "belongs to sampling"),
        ("release", "from random import gauss", "belongs to sampling"),
        ("release", "import secrets as s", "belongs to sampling"),
        ("release", "import os\nos.urandom(8)", "belongs to sampling"),
        ("release", "from os import urandom", "belongs to sampling"),
        ("release", "import os as o\no.getrandom(8)", "belongs to sampling"),
    ],
)
def test_the_checker_tells_a_violation(module, text, told):
    found = violations(module, text, package_of(module))
    assert found
    assert all(told in violation for violation in found)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("plan", "from rpexplore import __version__, certificate"),
        ("plan", "from .closure import Closure\nimport numpy as np\nnp.linalg.norm([1])"),
        ("solvers.newton", "from .protocol import Solver\nfrom rpexplore.errors import PlanError"),
        ("release", "from rpexplore import sampling"),
        ("sampling", "import os\nos.urandom(8)"),
        ("errors", "import randomness, streamlitics"),
    ],
)
def test_the_checker_accepts_imports_that_point_left(module, text):
    assert violations(module, text, package_of(module)) == []
