"""How each part of a plan is made again, as lines of Python."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.analysis.targets_met import wanted_targets
from rpexplore.common.numbers import exact_text
from rpexplore.common.template_text import text_from_template
from rpexplore.common.text import number_text
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain, except_from_records
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_objectives import LARGEST
from rpexplore.planning.pilot import share_of_pilot
from rpexplore.planning.serialization import options_of_loss
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.recipe import (
    PartFile,
    Recipe,
    Reproduction,
    call,
    lines_of_call,
    literal,
    source_of_loss,
    wrapped,
)
from rpexplore.scenarios.area_study import AreaStudy, AreaTarget, area_targets
from rpexplore.scenarios.bases import BasisChoice, text_of_basis_choice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.query_definitions import StatedQueries
from rpexplore.workload.query_files import csv_of_coefficients, csv_of_conditions
from rpexplore.workload.table_text import texts_of_tables
from rpexplore.workload.targets import Target
from rpexplore.workload.workload import Workload

# ---- How tables are made again: those of a plan, or those that an adaptive plan estimates.


# More tables, or weights and targets, than this are read from tables.csv.
MOST_OPTIONS = 10


def tables_again(plan: TablePlan, scenario: Scenario) -> Reproduction:
    """How the tables of a plan are made again."""
    recipe = Recipe.of(plan, scenario)
    loss, uniform = source_of_loss(plan.loss), recipe.uniform_reference
    more = {"uniform_reference": "True"} if uniform else {}
    share = None if plan.pilot is None else scenario.pilot or share_of_pilot(plan)
    pilot = None if share is None else exact_text(share)
    if pilot is not None:
        more["pilot"] = literal(pilot)
    pilot_option = [] if pilot is None else [["--pilot", pilot]]
    if plan.then is not None:
        limit, certainty = exact_text(plan.then.limit), plan.then.certainty
        more["then"] = call("rp.RestObjective", [literal(limit), literal(certainty)])
        pilot_option.append(["--then-most-people", "--cv-limit", limit, "--certainty", certainty])
    if plan.rules:
        more["require"] = f"[{', '.join(literal(str(rule)) for rule in plan.rules)}]"
    required = [["--require", str(rule)] for rule in plan.rules]
    losses = [[f"--{name}", text] for name, text in options_of_loss(plan.loss)]
    return Reproduction(
        asked="workload(domain())",
        settings={"loss": loss, **more},
        definitions=_definitions(recipe),
        imports=_imports(recipe),
        needs_path=bool(recipe.needs_tables_csv or recipe.custom_basis_files),
        verb=["rpexplore", "plan", "codebook.json"],
        options=[*_tables(recipe), *_basis_choices(recipe), *losses, *pilot_option, *required],
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
    has_levels = any(attribute.levels for attribute in recipe.domain)
    imports = ["from rpexplore.domain.levels import Level"] if has_levels else []
    if recipe.needs_tables_csv:
        imports.append("from rpexplore.workload.table_text import workload_from_csv")
    return imports


def _definitions(recipe: Recipe, prefix: str = "") -> str:
    """The functions workload and domain of a script."""
    targets = [setting.target for setting in (*recipe.request.groups, *recipe.request.settings)]
    with_required = any(target is not None and target.required for target in targets)

    def source_of_target(target: Target) -> str:
        """A number for a standard error, or what was typed."""
        number = target.to_json()
        # A number leaves it as it was whether the target is required.
        if with_required or isinstance(number, str):
            return f"rp.Target.parse({literal(str(target))})"
        return repr(number)

    return text_from_template(
        "rpexplore.reports",
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
    listed = [
        call("Level", [literal(level.name), wrapped(level.groups)]) for level in attribute.levels
    ]
    levels = [lines_of_call("levels=", listed)] if listed else []
    arguments = [literal(attribute.name), _values(attribute), *label, *groups, *levels]
    return call("rp.Attribute", arguments)


def _values(attribute: Attribute) -> str:
    values = attribute.values
    if isinstance(values, Integers):
        step = [f"step={values.step}"] if values.step != 1 else []
        limits = [str(values.minimum), str(values.maximum)]
        return call("rp.Integers", [*limits, *step, *_missing(values)])
    if isinstance(values, Bins):
        edges = [
            int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge for edge in values.edges
        ]
        whole = ["are_whole=True"] if values.are_whole else []
        return call("rp.Bins", [wrapped(edges), *_missing(values), *whole])
    if isinstance(values, Dates):
        ends = [f"edges={wrapped([edge.isoformat() for edge in values.edges])}"]
        if not values.edges:
            ends = [*map(literal, (values.first.isoformat(), values.last.isoformat(), values.step))]
        form = [f"format={literal(values.format)}"] if values.format else []
        return call("rp.Dates", [*ends, *form, *_missing(values)])
    if isinstance(values, Amounts):
        limits = [literal(str(limit)) for limit in (values.minimum, values.maximum)]
        more = [f"decimals={values.decimals}"] if values.decimals else []
        more += [f"unit={literal(values.unit)}"] if values.unit else []
        more += ["are_weights=True"] if values.are_weights else []
        return call("rp.Amounts", [*limits, *more, *_missing(values)])
    assert isinstance(values, Categories)
    labels = [f"labels={wrapped(values.labels)}"] if values.labels != values.values else []
    spelled = [f"spellings={wrapped(values.spellings)}"] if values.spellings else []
    numbers = ["are_numbers=True"] if values.are_numbers else []
    return call("rp.Categories", [wrapped(values.values), *labels, *spelled, *numbers])


def _missing(values: Integers | Bins | Dates | Amounts) -> list[str]:
    missing = [f"missing={wrapped(values.missing)}"] if values.missing else []
    recode = [f"recode={wrapped(values.recode)}"] if values.recode else []
    return [*missing, *recode]


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
        return f"rp.CustomBasis.read(file.read_bytes(), file.name, {attribute})"
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


# ---- How a part for areas is made again; its codebook of areas lies beside the script.


WHOLE = """\
# If wanted, whole counts that are never negative and add up: biased, and no privacy is spent.
rpexplore postprocess release --nonnegative --round --out whole
"""


def areas_again(plan: AreaPlan, scenario: Scenario) -> Reproduction:
    """How tables in areas are made again."""
    study = scenario.areas
    if study is None:
        raise PlanError("The scenario has no areas; give the one that the plan was made from.")
    loss = source_of_loss(study.loss)
    weighted = scenario.planned_areas
    is_weighted = weighted is not None and weighted != study
    options = None if is_weighted else _options(study)
    return Reproduction(
        asked="areas()",
        settings={"loss": loss, **({"uniform_levels": "True"} if study.uniform else {})},
        definitions=_areas_definitions(study, _weighting(scenario) if is_weighted else None),
        verb=[] if options is None else ["rpexplore", "plan", study.filename],
        options=options or [],
        files={
            "area_tables.csv": PartFile(
                csv_of_accuracy(plan), "every table on every level, as tables.csv has tables"
            )
        },
        after=WHOLE,
    )


def _weighting(scenario: Scenario) -> tuple[Attribute, str]:
    """The attribute that weights the tables in areas, and the source of the weighted workload."""
    study, weighted = scenario.areas, scenario.planned_areas
    assert study is not None
    assert weighted is not None
    before, after = (
        [table for tables in asked.tables.values() for table in tables.tables]
        for asked in (study, weighted)
    )
    stay = [table for table in dict.fromkeys(before) if table in after]
    name = scenario.request.weighted_by
    more = [f"unweighted=[{', '.join(map(literal, stay))}]"] if stay else []
    return scenario.domain[name], call(".weighted_by", [literal(name), *more])


def _areas_definitions(study: AreaStudy, weighting: tuple[Attribute, str] | None = None) -> str:
    weights, weighted = weighting or (None, "")
    added = ""
    if weights is not None and weights.name not in study.domain.names:
        added = (
            f"    weights = {_attribute(weights)}\n"
            "    domain = rp.Domain((*book.domain, weights), book.domain.impossible)\n"
            "    book = rp.AreaCodebook(book.name, book.tree, domain)\n"
        )
    lists: dict[str, str] = {}  # the source of tables -> what they are called
    for tables in study.tables.values():
        lists.setdefault(_areas_tables(tables), f"tables_{len(lists) + 1}")
    levels = [
        f"        {literal(level)}: {lists[_areas_tables(tables)]},\n"
        for level, tables in study.tables.items()
    ]
    named = "".join(
        f"    {name} = {source}\n".replace("\n", "\n    ").removesuffix("    ")
        for source, name in lists.items()
    )
    return (
        "def areas() -> rp.AreaWorkload:\n"
        '    """The tables of every level of areas."""\n'
        f"    book = rp.AreaCodebook.load({literal(study.filename)})\n"
        f"{added}{named}"
        f"    levels = {{\n{''.join(levels)}    }}\n"
        f"    return rp.AreaWorkload.of_levels(book.tree, levels){weighted}\n"
    )


def _options(study: AreaStudy) -> list[list[str]] | None:
    """The options that say the tables of a study; None where they cannot.

    They can where each level has all tables of up to some number of attributes that any level has,
    with the same targets, and weights in the same proportions.
    """
    asked = max(study.tables.values(), key=len)
    orders, factors = {}, {}
    for level, tables in study.tables.items():
        orders[level] = int(tables.orders.max())
        factors[level] = float(tables.weights[0] / asked.weights[0])
        if _settings(tables) != _settings(asked, orders[level], factors[level]):
            return None
    options = [
        ["--detail", "same"],
        *_asked(asked),
        *_of_levels(study, orders, int(asked.orders.max())),
    ]
    options += [
        [f"--level-weight={level}={number_text(factor)}"]
        for level, factor in factors.items()
        if factor != 1
    ]
    options += [[f"--{name}", text] for name, text in options_of_loss(study.loss)]
    return [*options, ["--uniform-levels"]] if study.uniform else options


def _settings(
    tables: Workload, order: int | None = None, factor: float = 1.0
) -> dict[tuple[str, ...], tuple[float, AreaTarget]]:
    """Weight, times a factor, and target of each table of up to so many attributes."""
    rows = zip(
        tables.tables,
        (tables.weights * factor).tolist(),
        area_targets(tables),
        tables.orders.tolist(),
        strict=True,
    )
    return {
        table: (weight, target)
        for table, weight, target, own in rows
        if order is None or own <= order
    }


def _asked(tables: Workload) -> list[list[str]]:
    """Options for tables, their weights and their targets."""
    order = int(tables.orders.max())
    texts = dict(zip(tables.tables, texts_of_tables(tables.domain, tables.tables), strict=True))
    whole = Workload.all_up_to(tables.domain, order).tables if order else []
    if tables.tables == whole:
        options = [["--up-to", str(order)]]
    else:
        options = [[f"--table={texts[table]}"] for table in tables.tables]
    settings = _settings(tables)
    for table, (weight, target) in settings.items():
        if weight != 1:
            options.append([f"--weight={texts[table]}={weight!r}"])
        if target is not None:
            text = repr(target)
            if isinstance(target, Target):
                text = f"{target.standard_error!r} required"
            options.append([f"--target={texts[table]}={text}"])
    return options


def _of_levels(study: AreaStudy, orders: Mapping[str, int], most: int) -> list[list[str]]:
    """Options for the levels that do not get all tables."""
    texts = {level: str(order) for level, order in orders.items() if order < most}
    texts |= {level: "none" for level in study.levels if level not in orders}
    return [[f"--level={level}={texts[level]}"] for level in study.levels if level in texts]


def _areas_tables(tables: Workload) -> str:
    """The source of the tables of a level."""
    order = int(tables.orders.max())
    is_plain = all(pair == (1.0, None) for pair in _settings(tables).values())
    if is_plain and order and tables.tables == Workload.all_up_to(tables.domain, order).tables:
        return f"rp.Workload.all_up_to(book.domain, {order})"
    settings = _settings(tables)
    weights = [repr(weight) for weight, _ in settings.values()]
    targets = [
        f"rp.Target({target.standard_error!r}, required=True)"
        if isinstance(target, Target)
        else repr(target)
        for _, target in settings.values()
    ]
    arguments = ["book.domain", f"[{', '.join(map(literal, settings))}]"]
    if set(weights) != {"1.0"}:
        arguments.append(f"weights=[{', '.join(weights)}]")
    if set(targets) != {"None"}:
        arguments.append(f"targets=[{', '.join(targets)}]")
    return call("rp.Workload.of", arguments)


# ---- How own counts are made again: from a CSV file of queries beside the script.


QUERIES = "own-counts.csv"


def counts_again(plan: QueryPlan, scenario: Scenario, codebook: Domain) -> Reproduction:
    """How own counts are made again. codebook: of the whole plan, which lies beside the script"""
    (attributes,) = texts_of_tables(codebook, [plan.domain.names])
    stated = _stated(plan, scenario)
    try:
        csv = csv_of_conditions(stated)
    except WorkloadError:  # not every query is a condition
        csv = csv_of_coefficients(stated)
    settings, options = {}, [["--counts-of", attributes], ["--counts", QUERIES]]
    if plan.objective is not LARGEST:
        settings["counts_objective"] = literal(plan.objective.option)
        options.append(["--counts-objective", plan.objective.option])
    if plan.free_counts:
        settings["free_counts"] = literal(plan.free_counts)
        options += [["--free-count", name] for name in plan.free_counts]
    return Reproduction(
        asked="counts()",
        settings=settings,
        definitions=(
            "def counts() -> rp.QueryList:\n"
            '    """The own counts, each with its target."""\n'
            '    book = rp.Domain.load(Path(__file__).with_name("codebook.json"))\n'
            f"    domain = rp.Domain(tuple(book[name] for name in {literal(plan.domain.names)}))\n"
            f"    file = Path(__file__).with_name({literal(QUERIES)})\n"
            "    return stated_from_csv(domain, file.read_bytes(), file.name).queries\n"
        ),
        imports=["from rpexplore.workload.query_files import stated_from_csv"],
        needs_path=True,
        verb=["rpexplore", "plan", "codebook.json"],
        options=options,
        files={QUERIES: PartFile(csv, "your own counts with their targets")},
    )


def _stated(plan: QueryPlan, scenario: Scenario) -> StatedQueries:
    """The queries of a plan as the scenario has them typed, if it has these."""
    queries, stated = plan.queries, scenario.query_list
    if stated is not None and stated.queries == queries:
        return stated
    return StatedQueries.of(queries)
