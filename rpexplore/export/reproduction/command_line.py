"""The command lines that make a plan again, check it, report on it, and run it."""

import shlex
from collections.abc import Iterable, Sequence

import numpy as np

from rpexplore.analysis.targets_met import wanted_targets
from rpexplore.export.reproduction.recipe import Recipe, budget_texts
from rpexplore.planning.loss_serialization import options_of_loss
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.basis_choice_text import text_of_basis_choice
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.table_text import texts_of_tables

# More tables, or weights and targets, than this are read from tables.csv.
MOST_OPTIONS = 10
_RECORD_NOUN = "records"


def command_lines(
    plan: Plan,
    request: WorkloadRequest | None = None,
    *,
    uniform_reference: bool | None = None,
    name: str = "",
    note: str = "",
    record_noun: str = _RECORD_NOUN,
    made: str = "made.json",
    records: str = "PATH/TO/records.csv",
) -> str:
    """The verbs for this plan, ready for a shell in the folder of the bundle.

    There are codebook.json, tables.csv, and custom bases as `Recipe.custom_basis_files` has them.

    Args:
        request: How the tables were asked for, where that is known.
        uniform_reference: As in the scenario, where that is known.
        name: What to call the plan in the report.
        note: A remark in the report.
        record_noun: What one record stands for, in the plural.
        made: The file for the plan that is made again, beside the exported plan.json.
        records: The file with the records.
    """
    recipe = Recipe.of(plan, request, uniform_reference)
    report = ["rpexplore", "report", "plan.json", "--out", "made.html"]
    for option, text in (("--name", name), ("--note", note)):
        report += [option, text] if text.strip() else []
    report += ["--record-noun", record_noun] if record_noun != _RECORD_NOUN else []
    return "\n".join(
        [
            "# Check the plan: privacy cost, every variance, and how close it is to the best one.",
            "rpexplore verify plan.json",
            "",
            f"# Make the plan again; it must have the SHA-256 {plan.sha256}",
            _over_lines(
                [["rpexplore", "plan", "codebook.json"], *_options(recipe), ["--out", made]]
            ),
            "",
            "# Write the report again (as made.pdf: as PDF).",
            shlex.join(report),
            "",
            "# Run the release on the records, once. It books what it costs in the ledger, and",
            "# writes the noisy tables into a new folder. On a terminal it asks before it begins,",
            "# in a script it does not.",
            shlex.join(["rpexplore", "release", "plan.json", records, "--out", "release"]),
            "",
        ]
    )


def _options(recipe: Recipe) -> list[list[str]]:
    """The options of `rpexplore plan` for this plan, each with its value."""
    plan = recipe.plan
    options = [*_tables(recipe), *_basis_choices(recipe), *_loss(plan)]
    for name, text in budget_texts(plan.budget).items():
        options.append([f"--{name.replace('_', '-')}", text])
    if plan.budget.max_records_per_person is not None:
        options.append(["--records-per-person", str(plan.budget.max_records_per_person)])
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
    named = dict(zip(rows, texts, strict=True))
    wanted = map(str, wanted_targets(workload, np.array(targeted, dtype=int), request))
    # With an equals sign, so that no name is taken for an option.
    return [
        *([kind[request.kind]] if by_kind else []),
        *([f"--table={named[row]}"] for row in listed),
        *([f"--weight={named[row]}={float(workload.weights[row])!r}"] for row in weighted),
        *([f"--target={named[row]}={text}"] for row, text in zip(targeted, wanted, strict=True)),
    ]


def _basis_choices(recipe: Recipe) -> list[list[str]]:
    """Options that say how attributes are asked."""
    options = []
    for choice in recipe.basis_choices:
        tables = list(texts_of_tables(recipe.domain, choice.tables))
        texts = text_of_basis_choice(choice, tables, recipe.file_of(choice))
        options += [[f"--basis={text}"] for text in texts]
    if recipe.uniform_reference:
        options.append(["--uniform-reference"])
    return options


def _loss(plan: Plan) -> list[list[str]]:
    return [[f"--{name}", text] for name, text in options_of_loss(plan.loss)]


def _over_lines(parts: Iterable[Sequence[str]]) -> str:
    """One command over several lines, a part of it on each."""
    return " \\\n    ".join(map(shlex.join, parts))
