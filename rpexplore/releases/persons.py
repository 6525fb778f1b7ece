"""Whose records are counted: what is looked at beyond the rule for persons of the records."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rpexplore.common.text import joined
from rpexplore.data.areas import AreaCoder, AreaCuts
from rpexplore.data.counting import BatchSource
from rpexplore.data.source import PersonRule, Source
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.universe import Comparison, Joined, Universe
from rpexplore.errors import DataError, ReleaseError
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.releases.release_steps import RunOptions

MOST_CODES = 10_000  # of areas of a level, that a statement of an engine compares records with


def one_of_each(budget: Budget, rule: PersonRule | None) -> PersonRule:
    """The rule by which one record of each value is counted; any, as they must not differ."""
    assert budget.distinct is not None
    if rule is not None:
        raise ReleaseError(
            f"The plan counts distinct values of {budget.distinct!r}, which needs no further rule "
            f"for persons, got the column {rule.column!r}; leave it out."
        )
    return PersonRule(budget.distinct, 1, "keep first", budget.distinct)


def refuse_differing(plan: Plan, source: Source, options: RunOptions, n_units: int) -> None:
    """Raise `DataError` where the records of one unit differ in what the plan counts."""
    rule, universe, domain = options.person_rule, plan.universe, plan.domain
    assert rule is not None
    of_areas: Any = plan.part("areas")
    tree: AreaTree | None = None if of_areas is None else of_areas.workload.tree
    levels = () if tree is None else tree.levels[1:]
    names = dict.fromkeys(name for part in plan.parts for name in part.columns)
    counted = domain.positions([name for name in names if name in domain.names])
    for name in (*(domain.names[index] for index in counted), *levels):
        if universe is not None and name in universe.columns:
            raise ReleaseError(
                f"The universe of the plan is about {name!r}, so that it cannot be seen "
                f"whether all records of one {rule.noun} have the same; leave the attribute out, "
                "or plan without that universe."
            )
    if isinstance(source, BatchSource):
        differing = source.differing(
            domain, counted, person_rule=rule, universe=universe, n_persons=n_units, tree=tree
        )
        named = (*domain.names, joined(levels))
    else:
        columns = [] if tree is None else _columns_of_areas(tree, source)
        attributes = (*domain.attributes, *columns)
        differing = (
            index
            for index in (*counted, *range(len(domain), len(attributes)))
            if _differ(attributes[index], plan, source, options, n_units)
        )
        named = tuple(attribute.name for attribute in attributes)
    for index in sorted(differing):
        raise DataError(
            f"The records of one {rule.noun} (column {rule.column!r}) differ in "
            f"{named[index]!r}, which a table or count of the plan has; give them "
            "the same value, leave the attribute out, or count records."
        )


def _columns_of_areas(tree: AreaTree, source: Source) -> list[Attribute]:
    """The columns that tell the areas of records, with the codes of their areas as categories.

    Raises `ReleaseError` where these are too many for the statements of an engine.
    """
    names = AreaCoder(AreaCuts(tree, ()), source.name, source.columns(), 0).names
    last = tree.level_slice(len(tree.levels) - 1)
    if np.all(np.flatnonzero(tree.n_parts == 0) >= last.start):
        codes = tree.codes.slice(last.start).cast(pa.string()).to_pylist()
        if len(set(codes)) == len(codes):
            # The lowest code alone says which area it is, also where a recode has moved it out of
            # what the columns above it name.
            names = names[-1:]
    columns = []
    for name in names:
        level = tree.levels.index(name)
        areas = tree.level_slice(level)
        codes = dict.fromkeys(tree.codes[areas].to_pylist())
        spellings: dict[str, list[str]] = {code: [] for code in codes}
        if (recodes := tree.recodes) is not None:
            for area, code in zip(recodes.areas.tolist(), recodes.codes.to_pylist(), strict=True):
                if areas.start <= area < areas.stop:
                    spellings[tree.codes[area].as_py()].append(code)
        if len(codes) + sum(map(len, spellings.values())) > MOST_CODES:
            raise ReleaseError(
                f"The areas have more than {MOST_CODES:,} codes on {name!r}, too many for the "
                f"database to see whether all records of one unit have the same; release a file of "
                "these records, or count records."
            )
        columns.append(
            Attribute(name, Categories(tuple(codes), (), tuple(map(tuple, spellings.values()))))
        )
    return columns


def _differ(
    attribute: Attribute, plan: Plan, source: Source, options: RunOptions, n_units: int
) -> bool:
    """Whether the records of some unit differ in an attribute, by counts alone.

    They have one value exactly if each digit of its number, in base 2, is the same on all of them:
    then those with records where it is 0, and those with others, are together as many as there
    are. What is in no category counts as a number of ones, which no value has.
    """
    takers, universe = options.takers(plan.domain), plan.universe
    for bit in range(attribute.size.bit_length()):
        half = frozenset(code for code in range(attribute.size) if not code >> bit & 1)
        attributes = (attribute,) if universe is None else (*universe.attributes, attribute)
        one: Comparison | Joined = Comparison(len(attributes) - 1, half)
        n_found = 0
        for side in (one, Joined("not", (one,))):
            both = side if universe is None else Joined("and", (universe.condition, side))
            takers["universe"] = Universe(attribute.name, attributes, both)
            counts = source.count(plan.domain, [()], **takers, person_rule=options.person_rule)
            n_found += counts.n_records
        if n_found != n_units:
            return True
    return False


def refuse_more_in_a_period(
    plan: Plan, source: Source, options: RunOptions, n_records: int
) -> None:
    """Raise `DataError` if a person has several records in one period of a panel.

    Each period is counted by itself, with one record allowed to a person. Together these must
    be all records, or one of them was not looked at.
    """
    rule, domain, period = options.person_rule, plan.domain, plan.budget.period
    assert rule is not None
    assert period is not None
    if period not in domain.names:
        raise ReleaseError(
            f"The plan is for a panel by {period!r}, and has no such attribute; plan again, with "
            "tables by it."
        )
    attribute, universe, n_in_periods = domain[period], plan.universe, 0
    takers = options.takers(domain)
    if universe is not None and period in universe.columns:
        raise ReleaseError(
            f"The universe of the plan is about {period!r}, so that records of a {rule.noun} "
            "in one period cannot be looked for; leave --person-id out, or plan without that "
            "universe."
        )
    for code in range(attribute.size):
        attributes = (attribute,) if universe is None else (*universe.attributes, attribute)
        within = Comparison(len(attributes) - 1, frozenset({code}))
        condition = within if universe is None else Joined("and", (universe.condition, within))
        takers["universe"] = Universe(f"{period}, value {code + 1}", attributes, condition)
        once = replace(rule, most=1, excess="refuse", of_one_period=True)
        counts = source.count(domain, [()], **takers, person_rule=once)
        n_in_periods += counts.n_records
    if n_in_periods != n_records:
        raise DataError(
            f"Not every record has one of the listed values of {period!r} as it is written in "
            f"the codebook, so that records of one {rule.noun} in one period cannot be looked "
            "for; write these values alike, or leave --person-id out."
        )
