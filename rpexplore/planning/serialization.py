"""Parts of plan files as JSON: losses (as text and as choices too), bases, strategies, tables."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from rpexplore.common.json_fields import check_keys, columns, dumps, floats, indices, lists
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.losses.losses import WEIGHTINGS, Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy, measured_attributes
from rpexplore.planning.solving import LOSSES
from rpexplore.workload.bases import Basis, from_json, to_json
from rpexplore.workload.workload import Workload


def loss_from_json(content: Any) -> Loss:
    """The loss of `Loss.to_json`; raises `PlanError` for an unknown kind."""
    # Of a `CustomLoss` files hold the name only, as the `UnavailableLoss` of the same kind.
    options, kinds = dict(content), {loss.kind: loss for loss in LOSSES}
    kind = options.pop("kind")
    if kind not in kinds:
        raise PlanError(f"the loss must be one of {', '.join(kinds)}, got {kind!r}.")
    loss: Any = kinds[kind]  # a dataclass, as every loss is
    known = [field.name for field in fields(loss)]
    check_keys(content, ["kind", *known], f"the loss {kind}")
    return loss(**options)


def loss_choices() -> dict[str, Loss]:
    """What can be chosen on a page: a loss with its usual options, by its `Loss.choice`."""
    return {loss.choice: loss for kind in LOSSES for loss in kind.choices()}


def option_forms() -> list[str]:
    """How losses are written on the command line: ["sum", …, "bounded:NUMBER", …]."""
    return [f"{loss.option}:NUMBER" if loss.number else loss.option for loss in _writable()]


def options_with(flag: str) -> list[str]:
    """The losses, as on the command line, that have an option, "weighting" or "relative_to"."""
    return [loss.option for loss in _writable() if flag in _flags(loss)]


def help_of_options() -> dict[str, str]:
    """What the command line says of losses: {name of the option: its help}."""
    sentences = []
    for loss in _writable():
        usual, *others = loss.choices()
        number = f". The number: {usual.number.label.lower()}" if usual.number else ""
        sentences.append(f"{_in_options(usual)}: {usual.title}{number}.")
        sentences += [f"{_in_options(other, usual)}: {other.title}." for other in others]
    weightings = "; ".join(f"{name}: {title}" for name, title in WEIGHTINGS.items())
    return {
        "loss": f"The objective; else {next(iter(_writable())).option}. {' '.join(sentences)}",
        "weighting": f"With --loss {', '.join(options_with('weighting'))}: how tables count in the "
        f"average; else equal. {weightings}.",
        "relative_to": f"With --loss {', '.join(options_with('relative_to'))}: variances count by "
        "weight (the default), or relative to each table's target.",
    }


def _in_options(loss: Loss, usual: Loss | None = None) -> str:
    """How a loss is written: "p-norm:2", or with the options in which it is not the usual one."""
    common = [] if usual is None else options_of_loss(usual)[1:]
    (_, text), *flags = options_of_loss(loss)
    more = [f" --{flag} {value}" for flag, value in flags if usual and (flag, value) not in common]
    return text + "".join(more)


def loss_from_text(
    text: str, *, weighting: str | None = None, relative_to: str | None = None
) -> Loss:
    """The loss of a text such as "sum" or "p-norm:3"; a number left out has its usual value.

    weighting, relative_to: of the losses that have them. Raises `WorkloadError` for an unknown
    text, a number that does not fit, and an option that belongs to other losses.
    """
    name, colon, number = text.strip().partition(":")
    by_option = {loss.option: loss for loss in _writable()}
    if name not in by_option:
        raise WorkloadError(f"The loss must be one of {', '.join(option_forms())}, got {text!r}.")
    loss = by_option[name]
    options: dict[str, Any] = {}
    if colon and loss.number is None:
        raise WorkloadError(f"The loss {name} takes no number, got {text!r}; leave it out.")
    if colon and loss.number is not None:
        try:
            options[loss.number.field] = float(number)
        except ValueError:
            raise WorkloadError(
                f"Behind the colon of {text!r} must stand a number, such as {name}:"
                f"{getattr(loss(), loss.number.field):g}."
            ) from None
    for flag, value in (("weighting", weighting), ("relative_to", relative_to)):
        if value is None:
            continue
        if flag not in _flags(loss):
            raise WorkloadError(
                f"--{flag.replace('_', '-')} belongs to the losses "
                f"{', '.join(options_with(flag))}, not to {name}; leave it out."
            )
        options[flag] = value
    return loss(**options)


def options_of_loss(loss: Loss) -> list[tuple[str, str]]:
    """The options that make `loss_from_text` give this loss: [("loss", "sum"), …].

    Raises `PlanError` for a custom loss, which is a piece of program.
    """
    if not loss.option:
        raise PlanError(
            f"The objective of this plan, {loss.title}, is known to the script that made it alone; "
            "plan with it there."
        )
    number = f":{getattr(loss, loss.number.field)!r}" if loss.number else ""
    flags = [(flag.replace("_", "-"), getattr(loss, flag)) for flag in _flags(type(loss))]
    return [("loss", f"{loss.option}{number}"), *flags]


def _writable() -> Iterable[type[Loss]]:
    return [loss for loss in LOSSES if loss.option]


def _flags(loss: type[Loss]) -> list[str]:
    """The names of a loss's options that are not its number."""
    number = loss.number.field if loss.number else ""
    dataclass: Any = loss
    return [field.name for field in fields(dataclass) if field.name != number]


# ---- Bases of attributes, and the strategies that they are measured by, in plan files.


def basis_lines(workload: Workload) -> list[str]:
    """The bases in which tables have each attribute."""
    return [
        dumps({"attribute": name, "bases": [to_json(basis) for basis in bases]})
        for name, bases in zip(workload.domain.names, workload.bases, strict=True)
        if bases
    ]


def strategy_lines(workload: Workload, closure: Closure) -> list[str]:
    """One row of a matrix a line; those of attributes."""
    return [
        _strategy_line(f'"attribute":{dumps(workload.domain.names[attribute])}', strategy)
        for attribute, strategy in sorted(closure.strategies.items())
        if attribute < len(workload.domain)
    ]


def residual_strategy_lines(workload: Workload, closure: Closure) -> list[str]:
    """Those that residuals have of their own."""
    names = workload.domain.names
    return [
        _matrix_line(f'"residual":{residual},"attribute":{dumps(names[attribute])}', own)
        for residual in closure.residuals_with_own_matrices
        for attribute, own in closure.own_matrices(residual).items()
    ]


def block_strategy_lines(workload: Workload, closure: Closure) -> list[str]:
    """Those of blocks of levels, by their numbers from 0 on."""
    first = len(workload.domain)
    return [
        _strategy_line(f'"block":{number - first}', strategy)
        for number, strategy in sorted(closure.strategies.items())
        if number >= first
    ]


def _strategy_line(head: str, strategy: Strategy) -> str:
    return _matrix_line(f'{head},"bits":{strategy.bits}', strategy)


def _matrix_line(head: str, strategy: Strategy) -> str:
    rows = ",\n".join(dumps(row) for row in strategy.integers.tolist())
    return f'{{{head},"matrix":[\n{rows}\n]}}'


def bases_from_json(content: dict[str, Any], domain: Domain) -> tuple[tuple[Basis, ...], ...]:
    """The bases of each attribute of the domain."""
    listed = columns(content, "bases", ("attribute", "bases"))
    bases: list[tuple[Basis, ...]] = [()] * len(domain)
    contents = lists(listed["bases"], "bases")
    for name, of_attribute in zip(listed["attribute"], contents, strict=True):
        bases[domain.position(name)] = tuple(from_json(basis) for basis in of_attribute)
    if listed["attribute"] != [domain.names[index] for index, own in enumerate(bases) if own]:
        raise PlanError(
            "the bases must be those that some table uses, in the order of the domain, each once."
        )
    return tuple(bases)


def strategies_from_json(content: dict[str, Any], workload: Workload) -> dict[int, Strategy]:
    listed = columns(content, "strategies", ("attribute", "bits", "matrix"))
    attributes = [workload.domain.position(name) for name in listed["attribute"]]
    if attributes != measured_attributes(workload):
        raise PlanError(
            "there must be one strategy for each attribute with another basis than single values, "
            "in the order of the domain."
        )
    return {
        attribute: _strategy(
            bits, rows, int(workload.domain.sizes[attribute]), workload.domain.names[attribute]
        )
        for attribute, bits, rows in zip(attributes, listed["bits"], listed["matrix"], strict=True)
    }


def with_residual_strategies_from_json(
    content: dict[str, Any],
    workload: Workload,
    closure: Closure,
    strategies: Mapping[int, Strategy],
) -> dict[int, Strategy]:
    """The strategies with those that residuals have of their own."""
    listed = columns(content, "residual_strategies", ("residual", "attribute", "matrix"))
    residuals = listed["residual"]
    if not all(type(one) is int and 0 <= one < len(closure) for one in residuals):
        raise PlanError(f"the residual of a strategy must be one of 0 to {len(closure) - 1}.")
    attributes = [workload.domain.position(name) for name in listed["attribute"]]
    stated = list(zip(residuals, attributes, strict=True))
    if not stated or stated != sorted(set(stated)):
        raise PlanError("the residual_strategies must be in the order of the residuals, each once.")
    own: dict[int, dict[tuple[int, ...], Strategy]] = {}
    for residual, attribute, rows in zip(residuals, attributes, listed["matrix"], strict=True):
        inside, size = closure.attributes(residual), int(workload.domain.sizes[attribute])
        name = workload.domain.names[attribute]
        if attribute not in inside or attribute not in strategies or closure.trees:
            raise PlanError(f"the residual {residual} has no strategy of {name!r}.")
        strategy = _strategy(strategies[attribute].bits, rows, size, name)
        own.setdefault(attribute, {})[inside] = strategy
    return {
        attribute: replace(strategy, of_residuals=own.get(attribute, {}))
        for attribute, strategy in strategies.items()
    }


def block_strategies_from_json(content: dict[str, Any], closure: Closure) -> dict[int, Strategy]:
    """The strategies of blocks of levels, by the numbers that stand for them."""
    listed = columns(content, "block_strategies", ("block", "bits", "matrix"))
    numbers = [number for tree in closure.trees for number in tree.numbers]
    stated = listed["block"]
    if not all(type(block) is int and 0 <= block < len(numbers) for block in stated):
        raise PlanError(f"the block of a strategy must be one of 0 to {len(numbers) - 1}.")
    if stated != sorted(set(stated)):
        raise PlanError("the block_strategies must be in the order of the blocks, each once.")
    return {
        numbers[block]: _strategy(bits, rows, closure.blocks[numbers[block]].size, f"block {block}")
        for block, bits, rows in zip(stated, listed["bits"], listed["matrix"], strict=True)
    }


def _strategy(bits: Any, rows: Any, size: int, name: str) -> Strategy:
    """A strategy for so many values; `PlanError` for anything else."""
    entries = [entry for row in lists(rows, "row of a strategy") for entry in row]
    whole = all(type(entry) is int and abs(entry) < 2**62 for entry in [bits, *entries])
    if not whole or [len(row) for row in rows] != [size] * (size - 1):
        raise PlanError(
            f"the strategy of {name!r} must be {size - 1} rows of {size} whole numbers, over a "
            "power of two."
        )
    return Strategy(np.array(entries, dtype=np.int64).reshape(-1, size), bits)


def cells_from_json(
    stated_tables: list[Any], stated_rows: list[Any], workload: Workload
) -> tuple[np.ndarray, np.ndarray]:
    """Cells of tables: the table of each, int64[n], and its row of each attribute's basis.

    The rows are int64[n, max_order], 0 behind.
    """
    tables = indices(stated_tables, len(workload), "table")
    rows = np.zeros((len(tables), workload.members.shape[1]), dtype=np.int64)
    n_queries = np.array([*workload.n_queries, 1])
    for row, table, cell in zip(rows, tables.tolist(), lists(stated_rows, "rows"), strict=True):
        ends = n_queries[workload.attribute_basis_index[table, : int(workload.orders[table])]]
        if len(cell) != len(ends) or not all(
            type(one) is int and 0 <= one < end for one, end in zip(cell, ends, strict=True)
        ):
            raise PlanError(f"the table {workload.describe(table)} has no cell {cell!r:.100}.")
        row[: len(cell)] = cell
    return tables, rows


# ---- Tables of a workload as rows of a JSON file, and back.


_TABLE_KEYS = ("attributes", "weight", "target", "required")


def tables_to_json(
    workload: Workload, basis_index: np.ndarray | None = None
) -> list[dict[str, Any]]:
    """Attributes, by their numbers in the domain, weight and target of each table.

    basis_index: int[n_tables, max_order], of the attributes of each table, −1 behind; None where
        all are single values, of which nothing is said
    """
    columns = (
        map(list, map(workload.attribute_indices, range(len(workload)))),
        workload.weights.tolist(),
        [None if math.isnan(target) else target for target in workload.targets.tolist()],
        workload.required.tolist(),
    )
    rows: list[dict[str, Any]] = [
        dict(zip(_TABLE_KEYS, row, strict=True)) for row in zip(*columns, strict=True)
    ]
    if basis_index is not None:
        for row, own in zip(rows, basis_index.tolist(), strict=True):
            row["basis_index"] = [index for index in own if index >= 0]
    return rows


def tables_from_json(
    listed: list[Any], domain: Domain, bases: tuple[tuple[Basis, ...], ...] | None = None
) -> Workload:
    """The tables that `tables_to_json` wrote; raises what `refusing` takes.

    bases: of each attribute of the domain, by whose numbers tables name theirs; None: all are
        single values
    """
    keys = _TABLE_KEYS if bases is None else (*_TABLE_KEYS, "basis_index")
    rows = columns({"tables": listed}, "tables", keys)
    tables = [
        tuple(indices(table, len(domain), "attribute of a table").tolist())
        for table in lists(rows["attributes"], "table's attributes")
    ]
    targets = [math.nan if target is None else target for target in rows["target"]]
    if not all(type(required) is bool for required in rows["required"]):
        raise PlanError("whether a target is required must be true or false.")
    workload = Workload.of(
        domain,
        [tuple(domain.names[index] for index in table) for table in tables],
        weights=floats(rows["weight"], "weight").tolist(),
        targets=[None if math.isnan(target) else target for target in floats(targets, "target")],
        required=rows["required"],
    )
    if tables != [tuple(workload.attribute_indices(row)) for row in range(len(workload))]:
        raise PlanError(
            "the tables of a workload must each be listed once, by number of attributes and then "
            "in domain order."
        )
    return workload if bases is None else _in_bases(workload, bases, rows["basis_index"])


def _in_bases(
    workload: Workload, bases: tuple[tuple[Basis, ...], ...], stated: list[Any]
) -> Workload:
    """Tables of single values in the bases that are stated for them instead."""
    index = np.full(workload.members.shape, -1)
    for row, own in enumerate(lists(stated, "basis_index")):
        attributes = workload.attribute_indices(row)
        fits = len(own) == len(attributes) and all(
            type(number) is int and 0 <= number < len(bases[attribute])
            for number, attribute in zip(own, attributes, strict=True)
        )
        if not fits:
            raise PlanError("each table must have one basis_index for each of its attributes.")
        index[row, : len(own)] = own
    return replace(workload, bases=bases, basis_index=index)
