"""How a part for areas is made again; its codebook of areas lies beside the script."""

from collections.abc import Mapping

from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.common.typed_numbers import number_text
from rpexplore.errors import PlanError
from rpexplore.export.reproduction.part import PartFile, Reproduction
from rpexplore.export.reproduction.python_source import (
    call,
    literal,
    source_of_loss,
)
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.loss_serialization import options_of_loss
from rpexplore.scenarios.area_study import AreaStudy, AreaTarget, area_targets
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.table_text import texts_of_tables
from rpexplore.workload.targets import Target
from rpexplore.workload.workload import Workload

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
    options = _options(study)
    return Reproduction(
        asked="areas()",
        settings={"loss": loss, **({"uniform_levels": "True"} if study.uniform else {})},
        definitions=_definitions(study),
        verb=[] if options is None else ["rpexplore", "plan", study.filename],
        options=options or [],
        files={
            "area_tables.csv": PartFile(
                csv_of_accuracy(plan), "every table on every level, as tables.csv has tables"
            )
        },
        after=WHOLE,
    )


def _definitions(study: AreaStudy) -> str:
    lists: dict[str, str] = {}  # the source of tables -> what they are called
    for tables in study.tables.values():
        lists.setdefault(_tables(tables), f"tables_{len(lists) + 1}")
    levels = [
        f"        {literal(level)}: {lists[_tables(tables)]},\n"
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
        f"{named}"
        f"    levels = {{\n{''.join(levels)}    }}\n"
        "    return rp.AreaWorkload.of_levels(book.tree, levels)\n"
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


def _tables(tables: Workload) -> str:
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
