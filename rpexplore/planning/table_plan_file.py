"""Tables in a plan file: each table and each residual on a line of its own.

What tables have beside their attributes is listed once, as a class of tables, and so is each noise
scale.
"""

import math
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.json_fields import (
    check_keys,
    columns,
    dumps,
    floats,
    indices,
    indices_by_first_use,
    list_of,
    lists,
    not_negative,
    object_text,
    positive,
    positive_exact,
    text_of,
)
from rpexplore.common.numbers import Decimals, distinct_rows, exact_text, shown
from rpexplore.common.processes import collection_paused
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.exact_totals import (
    exact_totals,
    kept_totals,
    refuse_unprotected,
    refuse_unprotected_by_residual,
)
from rpexplore.planning.mechanism.panel import Panel, partners_of
from rpexplore.planning.mechanism.replacement import Replacement, Totals, parts_of_totals
from rpexplore.planning.mechanism.variances import TableVariances
from rpexplore.planning.part_plan import Certificate, certificate_from_json
from rpexplore.planning.plan_fields import (
    BASES,
    BASIS_INDEX,
    BLOCK_STRATEGIES,
    BUDGET,
    LOSS_VALUE,
    LOSSES,
    RECORD_PRICES,
    REQUIRED,
    RESIDUAL_STRATEGIES,
    STRATEGIES,
    TARGET,
    WEIGHT,
    above_0,
    above_0_or_null,
    at_least_0,
    certificate,
    const,
    domain,
    exact,
    index,
    keys,
    of_type,
    one_of,
    record,
    rows,
    sha256,
)
from rpexplore.planning.serialization import (
    bases_from_json,
    basis_lines,
    block_strategies_from_json,
    block_strategy_lines,
    cells_from_json,
    loss_from_json,
    residual_strategy_lines,
    strategies_from_json,
    strategy_lines,
    with_residual_strategies_from_json,
)
from rpexplore.planning.solvers.solution import CellPrices
from rpexplore.privacy.budget import Budget
from rpexplore.workload.attribute_sets import padded
from rpexplore.workload.rules import CELLS, MEDIAN, PEOPLE, SURELY, Rule, rules_of
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    from rpexplore.planning.table_plan import TablePlan


CLASS = record(
    basis_index=BASIS_INDEX,
    weight=WEIGHT,
    target=TARGET,
    required=REQUIRED,
    variance=above_0("Mean variance of the noise of the cells, in records squared."),
    largest_variance=above_0(
        "Variance of the noise of the least accurate cell, in records squared."
    ),
    smallest_variance=above_0(
        "Variance of the noise of the most accurate cell, in records squared."
    ),
    shadow_price=at_least_0(
        "Of a sum or a largest variance, by how many per cent the smallest possible loss "
        "grows when the weight grows by one per cent; of other losses, the table's share of"
        " the sum of dual weights times variances. Over all tables they sum to 1."
    ),
    dual_weight=of_type(
        ["number", "null"],
        "The weight on the table's variance from which the lower bound follows: no plan "
        "with this budget has a smaller sum of dual weights times variances than the closed"
        " form of a weighted sum, and the loss bounds itself from below by such a sum. What"
        " is above the table's weight in a sum, or all in max_within_targets, is on its "
        "least accurate cells, as cells has them.",
        minimum=0,
    ),
)
CELL = record(
    table=index("Number of the table, from 0."),
    rows=rows(index(), "The row, from 0, of the basis of each of the table's attributes."),
    shadow_price=at_least_0("The share of this cell in the proof; they sum to 1."),
)
_TABLE = {
    "description": "Its attributes and its class.",
    "type": "array",
    "prefixItems": [
        rows(
            index(),
            "Numbers of attributes, from 0, under fields of the domain; empty: the total.",
            uniqueItems=True,
        ),
        index("The number of its class, from 0, under classes."),
    ],
    "items": False,
    "minItems": 2,
}
_DECIMAL = "^(?!0$)(0|[1-9][0-9]*)(\\.[0-9]*[1-9])?(?!\\n)$"
_NOISE_SCALE = of_type(
    "string",
    "In records squared: a positive plain decimal of at most 18 significant digits.",
    pattern=_DECIMAL,
)
FIELDS = record(
    kind=const("tables"),
    domain=domain("The attributes, as a Frictionless Table Schema."),
    loss=one_of(*LOSSES.values(), meaning="What the plan makes small."),
    budget=BUDGET,
    privacy_cost=exact(
        "Privacy cost of the plan for the privacy unit: at least the exact sum over "
        "residuals of the product over their attributes of (n-1)/n (sizes n) or, for one "
        "with a strategy, the largest squared column norm of its matrix, divided by "
        "sigma_squared, times the square of max_records_per_person; at most the budget's."
    ),
    certificate=certificate(
        "loss",
        LOSS_VALUE,
        "No plan with this budget has a loss below lower_bound.",
        limit=above_0_or_null(
            "Of sum_with_bounded_max: the largest weight times variance of any cell allowed."
        ),
    ),
    bases=BASES,
    strategies=STRATEGIES,
    residual_strategies=RESIDUAL_STRATEGIES,
    classes=rows(
        CLASS,
        "What tables have beside their attributes, each distinct combination once.",
        minItems=1,
    ),
    tables=rows(_TABLE, "What is released.", minItems=1),
    cells=rows(
        CELL,
        "The least accurate cells that limits and largest variances were found to hang on, "
        "by their shares in the proof; empty where all cells of each table are alike, and "
        "for losses of mean variances.",
    ),
    noise_scales=rows(
        _NOISE_SCALE,
        "The exact noise scales of residuals, sigma squared, each distinct one once.",
        minItems=1,
        uniqueItems=True,
    ),
    residuals=rows(
        index(),
        "What is measured: of every set of attributes within some table, what its marginal "
        "holds beyond the smaller ones. The sets follow from the tables; of each, its noise"
        " scale: the number, from 0, under noise_scales.",
        minItems=1,
    ),
    block_strategies=BLOCK_STRATEGIES,
    record_prices=RECORD_PRICES,
    replaced_groups=rows(
        rows(index(), "Attributes of one number of values, ascending.", minItems=1),
        "Where neighbours replace a record, and only there: all attributes of several values "
        "that some table has, each in one group. The cost is bounded as if residuals with as "
        "many attributes of each group had one noise scale, the smallest of theirs.",
        minItems=1,
    ),
    differences=rows(
        record(
            counts=rows(index(), "How many attributes of each group differ.", minItems=1),
            price=at_least_0("Its share in the lower bound; they sum to 1."),
            others=rows(
                index(),
                "Where totals are exact, and only there: how many other attributes of each group "
                "differ, of two records that exchange those of counts; all 0 where one record "
                "changes alone.",
                minItems=1,
            ),
        )
        | {"required": ["counts", "price"]},
        "With replaced_groups: the differences between two records that bound the loss; each "
        "stands for the mean of all with these counts.",
        minItems=1,
    ),
    period_prices=rows(
        of_type("number", minimum=0, maximum=1),
        "In a panel, and only there: of each residual that is measured by period as well, in "
        "their order, the price of what it costs beyond that, against 0.",
        minItems=1,
    ),
    pilot=exact(
        "Of a plan with a pilot: the share of the precision (1 over sigma squared) of every "
        "residual of at most one attribute that is measured before the rest."
    ),
    pilot_of=sha256(
        "Of the plan of a pilot alone: the SHA-256 of the plan that it is the first part of."
    ),
    then=record(
        "Of a plan with a pilot behind which the rest is planned anew: for most people in cells of "
        "at most the limit, a CV, by the median or lower end of a forecast.",
        limit=exact(),
        certainty={"enum": [MEDIAN, SURELY]},
    ),
    first_plan=sha256(
        "Of the plan of such a rest: the SHA-256 of the plan with the pilot, in first-….json."
    ),
    pilot_sha256=sha256(
        "Of the plan of such a rest: the SHA-256 of the pilot's figures that it was made from, "
        "int64 in little-endian order, one residual after another. No run begins by a plan of a "
        "rest without it."
    ),
    rules=rows(
        record(
            cv=of_type(
                "string",
                "The largest coefficient of variation of the noise of a cell: 0.2 is 20 %.",
                pattern=_DECIMAL,
            ),
            share=of_type(
                "string",
                "The share of people, or cells, of each table: 0.9 is 90 %.",
                pattern=_DECIMAL,
            ),
            of={"enum": [PEOPLE, CELLS]},
            tables=rows(
                index(), "The tables it is about, ascending, numbered from 0; empty: each table."
            ),
            certainty={
                "description": (
                    "Whether tables must meet it for the median of the forecast counts, or surely: "
                    "for the lower end of their range."
                ),
                "enum": [MEDIAN, SURELY],
            },
        ),
        "The rules that the tables were planned for, or are to be judged by. Left out where there "
        "are none. Whether tables meet them depends on their counts, which no plan knows.",
        minItems=1,
    ),
)
_OF_LEVELS = ("block_strategies", "record_prices")
_OF_REPLACING = ("replaced_groups", "differences")
_OF_PILOT = ("pilot", "pilot_of", "then", "first_plan", "pilot_sha256")
_IF_ANY = (*_OF_REPLACING, "period_prices", *_OF_PILOT, "rules", "residual_strategies")
FIELDS["required"] = [key for key in FIELDS["required"] if key not in (*_OF_LEVELS, *_IF_ANY)]

# ---- Tables in a plan file: each table and each residual on a line of its own.


_KEYS, _CERTIFICATE_KEYS = keys(FIELDS), keys(FIELDS, "certificate")
_CLASS_KEYS, _CELL_KEYS = keys(CLASS), keys(CELL)
_RULE_KEYS = ("cv", "share", "of", "tables", "certainty")
_VARIANCE_KEYS = ("variance", "largest_variance", "smallest_variance")


# ---- writing


@collection_paused()
def text_of_plan(plan: "TablePlan") -> str:
    """The object of a plan file that is this part."""
    workload, certificate = plan.workload, plan.certificate
    loss = plan.loss.to_json().items()
    head = {
        "kind": plan.kind,
        "domain": plan.domain.to_schema(),
        "loss": {key: value if isinstance(value, str) else float(value) for key, value in loss},
        "budget": plan.budget.to_json(),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "certificate": {
            "loss": certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
            "limit": certificate.limit,
        },
        **({} if plan.pilot is None else {"pilot": exact_text(plan.pilot)}),
        **({"pilot_of": plan.pilot_of} if plan.pilot_of else {}),
        **({} if plan.then is None else {"then": plan.then.to_json()}),
        **({} if plan.first is None else {"first_plan": plan.first.sha256}),
        **({"pilot_sha256": plan.pilot_sha256} if plan.pilot_sha256 else {}),
    }
    classes, class_index = _class_lines(workload, plan.table_variances, certificate)
    scales = plan.sigma_squared
    first_scales, scale_index = distinct_rows((scales.digits, scales.exponents))
    own = residual_strategy_lines(workload, plan.closure)
    sections = {
        "bases": basis_lines(workload),
        "strategies": strategy_lines(workload, plan.closure),
        **({"residual_strategies": own} if own else {}),
        "classes": classes,
        "tables": _table_lines(workload, class_index),
        "cells": _cell_lines(workload, certificate.cells),
        "noise_scales": [f'"{text}"' for text in scales[first_scales].texts()],
        "residuals": list(map(str, scale_index.tolist())),
    }
    if workload.has_levels:
        prices = plan.closure.prices
        sections["block_strategies"] = block_strategy_lines(workload, plan.closure)
        sections["record_prices"] = [] if prices is None else list(map(dumps, prices.tolist()))
    replacement = plan.closure.replacement
    if replacement is not None:
        columns_of = (replacement.counts, replacement.prices, replacement.others)
        rows = zip(*(column.tolist() for column in columns_of), strict=True)
        sections["replaced_groups"] = [dumps(list(group)) for group in replacement.groups]
        sections["differences"] = [
            dumps(
                {"counts": counts, "price": price}
                | ({"others": others} if replacement.exact else {})
            )
            for counts, price, others in rows
        ]
    panel = plan.closure.panel
    if panel is not None:
        paired = partners_of(plan.closure, panel.period) >= 0
        sections["period_prices"] = list(map(dumps, panel.shares[paired].tolist()))
    if plan.rules:
        sections["rules"] = [_rule_line(rule, workload) for rule in plan.rules]
    return object_text(head, sections)


def _class_lines(
    workload: Workload, variances: TableVariances, certificate: Certificate
) -> tuple[list[str], np.ndarray]:
    """The distinct rows of what tables have beside their attributes, and the row of each table."""
    dual_weights = certificate.dual_weights
    columns = (
        workload.weights, workload.targets, workload.required,
        variances.mean, variances.largest, variances.smallest, certificate.shadow_prices,
        np.full(len(workload), math.nan) if dual_weights is None else dual_weights,
    )  # fmt: skip
    first, class_index = distinct_rows((*workload.basis_index.T, *columns))
    bases = [[index for index in row if index >= 0] for row in workload.basis_index[first].tolist()]
    numbers = (column[first] for column in columns)
    or_null = (np.where(np.isnan(column), np.array(None), column) for column in numbers)
    rows = zip(bases, *or_null, strict=True)
    return [dumps(dict(zip(_CLASS_KEYS, row, strict=True))) for row in rows], class_index


def _table_lines(workload: Workload, class_index: np.ndarray) -> list[str]:
    digits = [str(attribute) for attribute in range(len(workload.domain))]
    rows = zip(workload.members.tolist(), class_index.tolist(), strict=True)
    return [
        f"[[{','.join([digits[index] for index in row if index >= 0])}],{number}]"
        for row, number in rows
    ]


def _cell_lines(workload: Workload, cells: CellPrices | None) -> list[str]:
    if cells is None:
        return []
    rows = zip(cells.tables.tolist(), cells.rows.tolist(), cells.prices.tolist(), strict=True)
    return [
        dumps({"table": table, "rows": cell[: workload.orders[table]], "shadow_price": price})
        for table, cell, price in rows
    ]


def _rule_line(rule: Rule, workload: Workload) -> str:
    tables = rule.places(workload) if rule.tables else []
    texts = (f"{number:f}" for number in (rule.cv, rule.share))
    return dumps(dict(zip(_RULE_KEYS, (*texts, rule.of, tables, rule.certainty), strict=True)))


# ---- reading


def fields_of_plan(content: dict[str, Any], version: str) -> dict[str, Any]:
    """The fields of the plan that a file holds; raises what `refusing` takes for what is unusable.

    Noise scales, variances, cost and certificate are taken as stated: `verification` checks them.
    """
    has_levels = isinstance(content, dict) and any(key in content for key in _OF_LEVELS)
    absent = set() if has_levels else set(_OF_LEVELS)
    if isinstance(content, dict):
        absent |= {key for key in _IF_ANY if key not in content}
    keys_there = [key for key in _KEYS if key not in absent]
    check_keys(content, keys_there, "the tables")
    check_keys(content["certificate"], _CERTIFICATE_KEYS, "the certificate")
    domain = Domain.from_schema(content["domain"])
    if domain.with_levels is not domain and not _is_of_columns(content, len(domain)):
        domain = domain.with_levels
    classes = columns(content, "classes", _CLASS_KEYS)
    workload, class_index = _workload(content, domain, classes)
    if has_levels != workload.has_levels:
        raise PlanError(
            f"{' and '.join(_OF_LEVELS)} must be there where an attribute is in tables at several "
            "levels, and nowhere else."
        )
    closure = Closure.of(workload)
    scales = Decimals.parse(list_of(content, "noise_scales"))
    residuals = list_of(content, "residuals")
    scale_index = indices_by_first_use(residuals, len(scales), "noise scale of a residual")
    if len(scale_index) != len(closure):
        raise PlanError(
            "the residuals must be all subsets of the tables (without single-valued attributes), "
            "by number of attributes and then in domain order, and each have a noise scale; there "
            f"must be {len(closure):,} residuals, got {len(scale_index):,}."
        )
    strategies = strategies_from_json(content, workload)
    if has_levels:
        strategies |= block_strategies_from_json(content, closure)
    if "residual_strategies" in content:
        strategies = with_residual_strategies_from_json(content, workload, closure, strategies)
    closure = closure.with_strategies(workload, strategies)
    if has_levels:
        closure = _with_stated_prices(closure, not_negative(content["record_prices"], "price"))
    budget = Budget.from_json(content["budget"])
    closure = _charged_as_stated(content, workload, closure, budget)
    loss = loss_from_json(content["loss"])

    def of_tables(key: str, check: Callable[..., np.ndarray] = not_negative) -> np.ndarray:
        return check(classes[key], key)[class_index]

    has_dual_weights = any(weight is not None for weight in classes["dual_weight"])
    certificate = certificate_from_json(
        content["certificate"],
        "loss",
        of_tables("shadow_price"),
        cells=_cells(content, workload),
        dual_weights=of_tables("dual_weight") if has_dual_weights else None,
    )
    variances = TableVariances(*(of_tables(key, positive) for key in _VARIANCE_KEYS))
    _refuse_unused(workload, loss, certificate, variances)
    return {
        "workload": workload,
        "loss": loss,
        "budget": budget,
        "closure": closure,
        "sigma_squared": scales[scale_index],
        "table_variances": variances,
        "exact_privacy_cost": positive_exact(content, "privacy_cost"),
        "certificate": certificate,
        "version": version,
        "pilot": positive_exact(content, "pilot") if "pilot" in content else None,
        "pilot_of": text_of(content, "pilot_of") if "pilot_of" in content else "",
        "rules": _rules(content, workload) if "rules" in content else (),
    }


def _charged_as_stated(
    content: dict[str, Any], workload: Workload, closure: Closure, budget: Budget
) -> Closure:
    """The closure at the costs for the neighbours of a budget, by what the file states."""
    is_simple = workload.is_marginals and not workload.has_levels
    by_residual = budget.replaces and not is_simple
    if any((key in content) != (budget.replaces and is_simple) for key in _OF_REPLACING):
        raise PlanError(
            f"{' and '.join(_OF_REPLACING)} must be there where neighbours replace a record and "
            "all tables are of single values, and nowhere else."
        )
    if ("period_prices" in content) != (budget.period is not None):
        raise PlanError("period_prices must be there in a panel, and nowhere else.")
    if budget.period is not None:
        if not is_simple or any(key in content for key in _OF_PILOT):
            raise PlanError("a panel must be of tables of single values, without a pilot.")
        return closure.in_panel(_panel(content, closure, budget, workload.domain))
    if by_residual:
        kept = kept_totals(workload, closure, budget)
        closure = closure.replacing_by_residual(replaces=True, kept=kept)
        refuse_unprotected_by_residual(closure, workload)
        return closure
    if not budget.replaces:
        return closure
    exact = exact_totals(workload, budget)
    if exact:
        refuse_unprotected(closure, workload, exact)
    return closure.replacing(_replacement(content, closure, exact))


def _rules(content: dict[str, Any], workload: Workload) -> tuple[Rule, ...]:
    listed = columns(content, "rules", _RULE_KEYS)
    if not listed["cv"]:
        raise PlanError("the rules must be left out where there are none.")
    names = workload.tables
    found = []
    for cv, share, of, places, certainty in zip(*listed.values(), strict=True):
        if not all(isinstance(text, str) for text in (cv, share, of, certainty)):
            raise PlanError("the cv, share, of and certainty of a rule must be texts.")
        tables = indices(places, len(workload), "table of a rule").tolist()
        if tables != sorted(set(tables)):
            raise PlanError("the tables of a rule must ascend, each once.")
        found.append(Rule(cv, share, of, [names[place] for place in tables], certainty))
    return rules_of(workload, found)


def _is_of_columns(content: dict[str, Any], n_columns: int) -> bool:
    """Whether no table has a number behind those of the attributes: that of a level."""
    listed = (row[0] for row in list_of(content, "tables") if isinstance(row, list) and row)
    numbers = (number for own in listed if isinstance(own, list) for number in own)
    return not any(type(number) is int and number >= n_columns for number in numbers)


def _panel(content: dict[str, Any], closure: Closure, budget: Budget, domain: Domain) -> Panel:
    """The panel of a budget, with the prices that are stated."""
    assert budget.period is not None
    if budget.period not in domain.names:
        raise PlanError(f"the period {shown(budget.period)} must be one of the attributes.")
    period, most = domain.names.index(budget.period), budget.max_records_per_person or 1
    panel, paired = Panel.of(closure, period, most), partners_of(closure, period) >= 0
    prices = not_negative(list_of(content, "period_prices"), "price")
    if len(prices) != np.count_nonzero(paired) or np.any(prices > 1) or not np.any(paired):
        raise PlanError(
            f"there must be {np.count_nonzero(paired):,} period_prices, at most 1 and one for each "
            f"residual that is measured by period as well, got {len(prices):,}."
        )
    if most > closure.sizes[period]:
        raise PlanError("a person cannot have records in more periods than there are.")
    shares = np.array(panel.shares)
    shares[paired] = prices
    return Panel(period, most, shares)


def _replacement(content: dict[str, Any], closure: Closure, exact: Totals) -> Replacement:
    """How records differ that replace each other, as stated; its prices prove what they can."""
    groups = lists(list_of(content, "replaced_groups"), "group")
    used = indices(list(chain.from_iterable(groups)), len(closure.sizes), "attribute of a group")
    in_tables = np.unique(closure.members[closure.members >= 0])
    parts = parts_of_totals(exact)
    same_size = all(
        len({(float(closure.sizes[index]), parts.get(index)) for index in group}) == 1
        for group in groups
    )
    ascend = all(group == sorted(group) for group in groups)
    if not (np.array_equal(np.sort(used), in_tables) and same_size and ascend):
        raise PlanError(
            "the replaced_groups must be of attributes of one number of values that are alike in "
            "the exact totals, ascending, and have every attribute of several values that some "
            "table has, once."
        )
    keys = ("counts", "price", "others") if exact else ("counts", "price")
    listed = columns(content, "differences", keys)
    rows = lists(listed["counts"], "counts")
    others = lists(listed["others"], "others") if exact else [[0] * len(groups) for _ in rows]
    if not rows or any(len(row) != len(groups) for row in (*rows, *others)):
        raise PlanError("every difference must have one count for each of the replaced_groups.")
    for group, counts, beside in zip(
        groups, zip(*rows, strict=True), zip(*others, strict=True), strict=True
    ):
        indices([*counts, *beside], len(group) + 1, "count of attributes that differ")
        if any(one + two > len(group) for one, two in zip(counts, beside, strict=True)):
            raise PlanError("no more attributes can differ than a group has.")
    prices = not_negative(listed["price"], "price")
    if not abs(float(np.sum(prices)) - 1) <= 1e-9:
        raise PlanError("the prices of differences must sum to 1.")
    found = Replacement(
        tuple(map(tuple, groups)),
        np.array(rows, dtype=np.int64),
        prices,
        np.array(others, dtype=np.int64),
        exact,
    )
    if exact and not found.are_moves:
        raise PlanError("a difference would change an exact total, which neighbours keep.")
    return found


def _with_stated_prices(closure: Closure, prices: np.ndarray) -> Closure:
    n_kinds = closure.n_kinds
    if len(prices) != n_kinds:
        raise PlanError(
            f"there must be {n_kinds:,} record_prices, one for each kind of record, got "
            f"{len(prices):,}."
        )
    if not n_kinds:
        return closure
    if not abs(float(np.sum(prices)) - 1) <= 1e-9:
        raise PlanError("the record_prices must sum to 1.")
    return closure.with_prices(prices)


def _tables(content: dict[str, Any], domain: Domain, n_classes: int) -> tuple[np.ndarray, ...]:
    """The attributes of each table as `padded` gives them, and its class."""
    rows = lists(list_of(content, "tables"), "table")
    if any(len(row) != 2 for row in rows):
        raise PlanError("every table must be a list of two: of its attributes, and its class.")
    members = lists([row[0] for row in rows], "table's attributes")
    indices(list(chain.from_iterable(members)), len(domain), "attribute of a table")
    classes = [row[1] for row in rows]
    return padded(members), indices_by_first_use(classes, n_classes, "class of a table")


def _workload(
    content: dict[str, Any], domain: Domain, classes: dict[str, list[Any]]
) -> tuple[Workload, np.ndarray]:
    """The workload, and the class of each of its tables."""
    members, class_index = _tables(content, domain, len(classes["weight"]))
    bases = bases_from_json(content, domain)
    rows = lists(classes["basis_index"], "basis_index")
    if not {type(index) for row in rows for index in row} <= {int}:
        raise PlanError("every basis_index must be a list of whole numbers.")
    orders = np.count_nonzero(members >= 0, axis=1)
    if not np.array_equal(np.array(list(map(len, rows)))[class_index], orders):
        raise PlanError("each table must have one basis_index for each of its attributes.")
    basis_index = padded(rows)[class_index]
    if not all(type(required) is bool for required in classes["required"]):
        raise PlanError("whether a target is required must be true or false.")
    targets = [math.nan if target is None else target for target in classes["target"]]
    workload = Workload(
        domain,
        members,
        floats(classes["weight"], "weight")[class_index],
        floats(targets, "target")[class_index],
        bases,
        basis_index,
        np.array(classes["required"], dtype=bool)[class_index],
    )
    if not np.array_equal(members, workload.members):
        raise PlanError(
            "the tables must each be listed once, by number of attributes and then in domain order."
        )
    if bases != workload.bases or not np.array_equal(basis_index, workload.basis_index):
        raise PlanError(
            "the bases must be those that some table uses, each once, single values first."
        )
    return workload, class_index


def _cells(content: dict[str, Any], workload: Workload) -> CellPrices | None:
    listed = columns(content, "cells", _CELL_KEYS)
    if not listed["table"]:
        return None
    tables, rows = cells_from_json(listed["table"], listed["rows"], workload)
    prices = not_negative(listed["shadow_price"], "shadow_price")
    return CellPrices(tables, rows, prices)


def _refuse_unused(
    workload: Workload, loss: Loss, certificate: Certificate, variances: TableVariances
) -> None:
    """Raise `PlanError` for parts that nobody would check, or that are missing."""
    if loss.is_proven_by_shadow_prices != (certificate.dual_weights is None):
        raise PlanError(
            "each table must have a dual_weight, but none with sums and largest variances: there "
            "it is null."
        )
    if loss.has_limit != (certificate.limit is not None):
        raise PlanError(
            "the certificate must have a limit with a bounded average, and null with other losses."
        )
    if workload.is_marginals and (
        certificate.cells is not None
        or not np.array_equal(variances.largest, variances.mean)
        or not np.array_equal(variances.smallest, variances.mean)
    ):
        raise PlanError(
            "where all tables are of single values, all cells of a table have one variance, and "
            "none of them a shadow price of its own."
        )
