"""How a plan for areas is made again: as a Python script and as a command line."""

import shlex
from collections.abc import Mapping

from rpexplore.analysis.budget_units import typed_text
from rpexplore.common.typed_numbers import number_text
from rpexplore.export.reproduction.script import call, literal, source_of_budget, source_of_loss
from rpexplore.planning.loss_serialization import options_of_loss
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.area_study import AreaStudy, AreaTarget, area_targets
from rpexplore.workload.table_text import texts_of_tables
from rpexplore.workload.targets import Target
from rpexplore.workload.workload import Workload

PLAN = "plan.json"
RUN = f"""\
# Check the plan: privacy cost, every variance, and how close it is to the best one.
rpexplore verify {PLAN}

# Run the release on the records, once. It books what it costs in the ledger: always the same one.
rpexplore release {PLAN} PATH/TO/records.csv --out areas-release --ledger PATH/TO/ledger.sqlite

# If wanted, whole counts that are never negative and add up: biased, and no privacy is spent.
rpexplore postprocess areas-release --nonnegative --round --out areas-whole
"""
"""What comes after the plan, on the command line."""


def area_script(study: AreaStudy, budget: Budget) -> str:
    """A Python script that makes the plan of a study, beside its codebook."""
    lists: dict[str, str] = {}  # the source of tables -> what they are called
    for tables in study.tables.values():
        lists.setdefault(_tables(tables), f"tables_{len(lists) + 1}")
    levels = [
        f"    {literal(level)}: {lists[_tables(tables)]},\n"
        for level, tables in study.tables.items()
    ]
    arguments = [
        "rp.AreaWorkload.of_levels(areas.tree, levels)",
        f"loss={source_of_loss(study.loss)}",
        f"budget={source_of_budget(budget)}",
        *(["uniform_levels=True"] if study.uniform else []),
    ]
    return (
        "import rpexplore as rp\n\n"
        f"areas = rp.AreaCodebook.load({literal(study.filename)})\n"
        + "".join(f"{name} = {source}\n" for source, name in lists.items())
        + f"levels = {{\n{''.join(levels)}}}\n"
        + f"plan = {call('rp.plan_areas', arguments)}\n"
        + f"plan.save({literal(PLAN)})\n"
    )


def area_command(study: AreaStudy, budget: Budget) -> str:
    """The command line that makes the plan of a study; "" where options cannot say its tables.

    They can where each level has all tables of up to some number of attributes that any level has,
    with the same targets, and weights in the same proportions.
    """
    asked = max(study.tables.values(), key=len)
    orders, factors = {}, {}
    for level, tables in study.tables.items():
        orders[level] = int(tables.orders.max())
        factors[level] = float(tables.weights[0] / asked.weights[0])
        if _settings(tables) != _settings(asked, orders[level], factors[level]):
            return ""
    options = [*_asked(asked), *_of_levels(study, orders, int(asked.orders.max()))]
    options += [
        [f"--level-weight={level}={number_text(factor)}"]
        for level, factor in factors.items()
        if factor != 1
    ]
    options += [[f"--{name}", text] for name, text in options_of_loss(study.loss)]
    if study.uniform:
        options.append(["--uniform-levels"])
    for name, value in budget.stated:
        options.append([f"--{name.replace('_', '-')}", typed_text(value)])
    if budget.max_records_per_person is not None:
        options.append(["--records-per-person", str(budget.max_records_per_person)])
    make = [["rpexplore", "areas", "plan", study.filename], *options, ["--out", PLAN]]
    return " \\\n    ".join(map(shlex.join, make))


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
        return f"rp.Workload.all_up_to(areas.domain, {order})"
    settings = _settings(tables)
    weights = [repr(weight) for weight, _ in settings.values()]
    targets = [
        f"rp.Target({target.standard_error!r}, required=True)"
        if isinstance(target, Target)
        else repr(target)
        for _, target in settings.values()
    ]
    arguments = ["areas.domain", f"[{', '.join(map(literal, settings))}]"]
    if set(weights) != {"1.0"}:
        arguments.append(f"weights=[{', '.join(weights)}]")
    if set(targets) != {"None"}:
        arguments.append(f"targets=[{', '.join(targets)}]")
    return call("rp.Workload.of", arguments)
