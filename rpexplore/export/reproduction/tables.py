"""How tables are made again: those of a plan, or those that an adaptive plan estimates."""

from dataclasses import fields
from typing import Any

import numpy as np

from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.analysis.targets_met import wanted_targets
from rpexplore.common.template_text import text_from_template
from rpexplore.domain.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain.provenance import except_from_records
from rpexplore.export.reproduction.part import PartFile, Reproduction
from rpexplore.export.reproduction.python_source import (
    call,
    literal,
    source_of_loss,
    wrapped,
)
from rpexplore.export.reproduction.recipe import Recipe
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.loss_serialization import options_of_loss
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.basis_choice_text import text_of_basis_choice
from rpexplore.scenarios.basis_choices import BasisChoice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.table_text import texts_of_tables
from rpexplore.workload.targets import Target

# More tables, or weights and targets, than this are read from tables.csv.
MOST_OPTIONS = 10


def tables_again(plan: TablePlan, scenario: Scenario) -> Reproduction:
    """How the tables of a plan are made again."""
    recipe = Recipe.of(plan, scenario)
    loss, uniform = source_of_loss(plan.loss), recipe.uniform_reference
    uniform_text = {"uniform_reference": "True"} if uniform else {}
    losses = [[f"--{name}", text] for name, text in options_of_loss(plan.loss)]
    return Reproduction(
        asked="workload(domain())",
        settings={"loss": loss, **uniform_text},
        definitions=_definitions(recipe),
        imports=_imports(recipe),
        needs_path=bool(recipe.needs_tables_csv or recipe.custom_basis_files),
        verb=["rpexplore", "plan", "codebook.json"],
        options=[*_tables(recipe), *_basis_choices(recipe), *losses],
        files=_files(plan, recipe, "every table with its cells, standard error, weight and target"),
    )


def rounds_again(plan: AdaptivePlan, scenario: Scenario, prefix: str = "") -> Reproduction:
    """How the tables that an adaptive plan estimates are planned again.

    prefix: of names of functions and files, where other tables stand beside
    """
    recipe, count = Recipe.of(plan, scenario), str(plan.expected_records)
    workload = f"{prefix}workload({prefix}domain())"
    return Reproduction(
        asked=f"rp.Rounds({workload}, {count})",
        definitions=_definitions(recipe, prefix),
        imports=_imports(recipe),
        needs_path=recipe.needs_tables_csv,
        verb=["rpexplore", "plan", "codebook.json", "--adaptive"],
        options=[*_tables(recipe), ["--expected-count", count]],
        files=_files(plan, recipe, "every table that is estimated, with its cells", prefix),
    )


def _files(plan: Any, recipe: Recipe, purpose: str, prefix: str = "") -> dict[str, PartFile]:
    basis_files = recipe.custom_basis_files.values()
    return {
        f"{prefix}tables.csv": PartFile(csv_of_accuracy(plan), purpose),
        **{name: PartFile(text, "own matrix of an attribute") for name, text in basis_files},
    }


def _imports(recipe: Recipe) -> list[str]:
    if not recipe.needs_tables_csv:
        return []
    return ["from rpexplore.workload.table_text import workload_from_csv"]


def _definitions(recipe: Recipe, prefix: str = "") -> str:
    """The functions workload and domain of a script."""
    targets = [setting.target for setting in (*recipe.request.groups, *recipe.request.settings)]
    with_required = any(target is not None and target.required for target in targets)

    def source_of_target(target: Target) -> str:
        """A number for a standard error, or what was typed."""
        number = target.to_json()
        # A number leaves it as it was whether the target is required.
        if with_required or isinstance(number, str):
            return f"rp.parse_target({literal(str(target))})"
        return repr(number)

    return text_from_template(
        "rpexplore.export.reproduction",
        "tables.py.j2",
        prefix=prefix,
        recipe=recipe,
        request=recipe.request,
        exception=except_from_records(recipe.domain),
        tables=_builder(recipe),
        weights={
            setting.attributes: repr(setting.weight)
            for setting in recipe.settings
            if setting.weight is not None
        },
        targets={
            setting.attributes: source_of_target(setting.target)
            for setting in recipe.settings
            if setting.target is not None
        },
        # Bases of all tables before those of some.
        basis_choices=sorted(recipe.basis_choices, key=lambda choice: bool(choice.tables)),
        literal=literal,
        target=source_of_target,
        source_of_attribute=_attribute,
        impossible=[dict(one.selections) for one in recipe.domain.impossible],
        with_basis=lambda choice: _with_basis(choice, recipe.file_of(choice)),
    )


def _attribute(attribute: Attribute) -> str:
    label = [f"label={literal(attribute.label)}"] if attribute.label else []
    groups = [f"groups={wrapped(attribute.groups)}"] if attribute.groups else []
    return call("rp.Attribute", [literal(attribute.name), _values(attribute), *label, *groups])


def _values(attribute: Attribute) -> str:
    values = attribute.values
    if isinstance(values, Integers):
        step = [f"step={values.step}"] if values.step != 1 else []
        return call("rp.Integers", [str(values.minimum), str(values.maximum), *step])
    if isinstance(values, Bins):
        edges = [
            int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge for edge in values.edges
        ]
        return call("rp.Bins", [wrapped(edges)])
    assert isinstance(values, Categories)
    labels = [f"labels={wrapped(values.labels)}"] if values.labels != values.values else []
    return call("rp.Categories", [wrapped(values.values), *labels])


def _builder(recipe: Recipe) -> str:
    """The call that makes the tables, unless they are listed."""
    request = recipe.request
    if request.kind == "listed":
        return ""
    builder = {
        "up_to": f"all_up_to(domain, {recipe.order}",
        "of_order": f"all_of_order(domain, {recipe.order}",
        "at_most_cells": f"all_with_at_most(domain, cells={request.cells}",
    }[request.kind]
    if request.only:
        builder += f", only={literal(request.only)}"
    if request.containing:
        builder += f", containing={literal(request.containing)}"
    if request.most_cells is not None and request.kind != "at_most_cells":
        builder += f", cells={request.most_cells}"
    return f"{builder})"


def _with_basis(choice: BasisChoice, file: str) -> str:
    """The call that gives a workload a basis; file: that of a custom one, else ""."""
    bases = f"{{{literal(choice.attribute)}: {_basis(choice, file)}}}"
    tables = [f"tables=[{', '.join(map(literal, choice.tables))}]"] if choice.tables else []
    return call("workload.with_bases", [bases, *tables])


def _basis(choice: BasisChoice, file: str) -> str:
    if file:
        attribute = f"domain[{literal(choice.attribute)}]"
        return f"rp.read_custom_basis(file.read_bytes(), file.name, {attribute})"
    values = [(getattr(choice.basis, field.name), field.default) for field in fields(choice.basis)]
    arguments = [literal(value) for value, default in values if value != default]
    return f"rp.{type(choice.basis).__name__}({', '.join(arguments)})"


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
