"""The command lines that make a plan again, check it, report on it, and run it."""

import shlex
from collections.abc import Sequence

import numpy as np

from rpexplore.analysis.targets_met import wanted_targets
from rpexplore.export.reproduction.recipe import Recipe, budget_texts
from rpexplore.planning.losses.loss_text import options_of_loss
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.basis_choice_text import text_of_basis_choice
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.table_text import texts_of_tables

# More tables, or importances and targets, than this are read from tables.csv.
MOST_OPTIONS = 10
_COUNTED = "records"


def command_lines(
    plan: Plan,
    request: WorkloadRequest | None = None,
    *,
    uniform_reference: bool | None = None,
    name: str = "",
    note: str = "",
    counted: str = _COUNTED,
    made: str = "made.json",
    records: str = "PATH/TO/records.csv",
) -> str:
    """The verbs for this plan, in the folder of codebook.json and tables.csv, ready for a shell.

    Own questions are in files there as well, as `Recipe.custom_basis_files` has them.

    uniform_reference: as in the scenario, where that is known
    made: the file for the plan that is made again, beside the exported plan.json
    """
    recipe = Recipe.of(plan, request, uniform_reference)
    report = ["rpexplore", "report", "plan.json", "--out", "made.html"]
    for option, text in (("--name", name), ("--note", note)):
        report += [option, text] if text.strip() else []
    report += ["--counted", counted] if counted != _COUNTED else []
    return "\n".join(
        [
            "# Check the plan: privacy cost, every variance, and how close it is to the best one.",
            "rpexplore verify plan.json",
            "",
            f"# Make the plan again; it must have the SHA-256 {plan.sha256}",
            _joined(["rpexplore", "plan", "codebook.json"], _options(recipe), ["--out", made]),
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
    """Options that say the tables, their importance and their targets; or the file with all."""
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
    named = dict(
        zip(
            sorted({*listed, *weighted, *targeted}),
            texts_of_tables(
                recipe.domain,
                [workload.tables[row] for row in sorted({*listed, *weighted, *targeted})],
            ),
            strict=True,
        )
    )
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
    asked = [
        [f"--ask={text}"]
        for each in recipe.basis_choices
        for text in text_of_basis_choice(
            each, list(texts_of_tables(recipe.domain, each.tables)), recipe.file_of(each)
        )
    ]
    return [*asked, *([["--even-totals"]] if recipe.uniform_reference else [])]


def _loss(plan: Plan) -> list[list[str]]:
    return [[f"--{name}", text] for name, text in options_of_loss(plan.loss)]


def _joined(command: Sequence[str], options: Sequence[Sequence[str]], last: Sequence[str]) -> str:
    """One command over several lines, an option on each."""
    return " \\\n    ".join(shlex.join(part) for part in (command, *options, last))
