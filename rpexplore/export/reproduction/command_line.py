"""The command lines that make a plan again, check it, report on it, and run it."""

import shlex
from collections.abc import Sequence

import numpy as np

from rpexplore.analysis.budget_units import typed_text
from rpexplore.analysis.targets_met import wanted_targets
from rpexplore.common.template_text import text_from_template
from rpexplore.export.reproduction.recipe import Recipe
from rpexplore.planning.loss_serialization import options_of_loss
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.basis_choice_text import text_of_basis_choice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.table_text import texts_of_tables

# More tables, or weights and targets, than this are read from tables.csv.
MOST_OPTIONS = 10
_RECORD_NOUN = "records"


def command_lines(
    plan: TablePlan, scenario: Scenario, rehearsed: bool = False, approvals: Sequence[str] = ()
) -> str:
    """The verbs for a scenario's plan, ready for a shell in the folder of the bundle.

    There are codebook.json, tables.csv, expected.csv, board.json, and custom bases as
    `Recipe.custom_basis_files` has them.

    rehearsed: whether the report has a rehearsal of smooth tables. approvals: files of those that
    it names
    """
    make = [["rpexplore", "plan", "codebook.json"], *_options(Recipe.of(plan, scenario))]
    report = ["rpexplore", "report", "plan.json", "--out", "made.html"]
    for option, text in (
        ("--survey", scenario.survey),
        ("--name", scenario.name),
        ("--note", scenario.note),
    ):
        report += [option, text] if text.strip() else []
    if scenario.record_noun != _RECORD_NOUN:
        report += ["--record-noun", scenario.record_noun]
    report += [*_expected_counts(scenario), *(["--rehearse"] if rehearsed else [])]
    if not scenario.board.is_empty:
        report += ["--board", "board.json"]
    for name in approvals:
        report += ["--approval", name]
    return text_from_template(
        "rpexplore.export.reproduction",
        "commands.txt.j2",
        plan=plan,
        make=" \\\n    ".join(map(shlex.join, [*make, ["--out", "made.json"]])),
        report=shlex.join(report),
    )


def _expected_counts(scenario: Scenario) -> list[str]:
    """Options that say the expected counts, and the limit of publishable cells."""
    expected = scenario.expected
    if expected is None:
        return []
    limit = ["--cv-limit", repr(scenario.cv_limit)]
    if expected.attributes:
        return ["--expected", "expected.csv", *limit]
    return ["--expected-count", repr(expected.total).removesuffix(".0"), *limit]


def _options(recipe: Recipe) -> list[list[str]]:
    """The options of `rpexplore plan` for this plan, each with its value."""
    budget = recipe.plan.budget
    options = [*_tables(recipe), *_basis_choices(recipe)]
    options += [[f"--{name}", text] for name, text in options_of_loss(recipe.plan.loss)]
    for name, value in budget.stated:
        options.append([f"--{name.replace('_', '-')}", typed_text(value)])
    if budget.max_records_per_person is not None:
        options.append(["--records-per-person", str(budget.max_records_per_person)])
    return options


def _tables(recipe: Recipe) -> list[list[str]]:
    """Options that say the tables, their weights and their targets; or the file with all."""
    workload, request = recipe.plan.workload, recipe.request
    weighted = np.flatnonzero(workload.weights != 1).tolist()
    targeted = np.flatnonzero(~np.isnan(workload.targets)).tolist()
    by_kind = request.kind != "listed" and not request.is_narrowed
    listed = [] if by_kind else list(range(len(workload)))
    if max(len(listed), len(weighted) + len(targeted)) > MOST_OPTIONS:
        return [["--tables", "tables.csv"]]
    kind = {
        "up_to": ["--up-to", str(recipe.order)],
        "of_order": ["--of-order", str(recipe.order)],
        "at_most_cells": ["--at-most-cells", str(request.cells)],
    }
    rows = sorted({*listed, *weighted, *targeted})
    texts = texts_of_tables(recipe.domain, [workload.tables[row] for row in rows])
    text_of = dict(zip(rows, texts, strict=True))
    targets = wanted_targets(workload, np.array(targeted, dtype=int), request)
    # With an equals sign, so that no name is taken for an option.
    return [
        *([kind[request.kind]] if by_kind else []),
        *([f"--table={text_of[row]}"] for row in listed),
        *([f"--weight={text_of[row]}={float(workload.weights[row])!r}"] for row in weighted),
        *([f"--target={text_of[row]}={t}"] for row, t in zip(targeted, targets, strict=True)),
    ]


def _basis_choices(recipe: Recipe) -> list[list[str]]:
    """Options that say the bases of attributes."""
    options = []
    for choice in recipe.basis_choices:
        tables = list(texts_of_tables(recipe.domain, choice.tables))
        texts = text_of_basis_choice(choice, tables, recipe.file_of(choice))
        options += [[f"--basis={text}"] for text in texts]
    if recipe.uniform_reference:
        options.append(["--uniform-reference"])
    return options
