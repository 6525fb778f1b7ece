"""Product queries about an attribute that tables have at its levels: which of these tell them.

Tables with `age@five-year` and none with `age` still tell how many are 20 to 34, because that is a
union of groups: a query is one about groups if it has the same number for all values of each. Then
its answer and variance are those of the query about groups (docs/mathematics.md §3.2).
"""

from collections.abc import Callable, Iterable
from itertools import groupby

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.reconstruction import MarginalNoise, Where

_MOST_NAMED = 20  # values of a selection that an error names one by one


def queries_at_levels(
    domain: Domain, where: Where, tables: Iterable[tuple[str, ...]]
) -> list[dict[str, list[float]]]:
    """The same query about the levels that tables have, one for each set of them; [] for none.

    Args:
        domain: That of the tables, with levels.
        where: A query about columns or levels; the first is the query itself if a table has it.
        tables: The attributes of each table.

    Raises:
        WorkloadError: If tables have the attributes together, but at levels of which none tells
            what is asked; and for numbers that do not fit.
        DomainError: For an unknown attribute, or a text that names no values.
    """
    asked = domain.positions(where)
    vectors = MarginalNoise(domain, asked, {}, {}).vectors(where)
    forms = {domain.names[index]: _at_levels(domain, index, vectors[index]) for index in asked}
    found: dict[AttributeIndices, dict[str, list[float]]] = {}
    untold: dict[str, dict[str, None]] = {}  # of attributes the levels that do not tell them
    looked_at: set[tuple[str, ...]] = set()
    for table in tables:
        # Most of many tables miss the first attribute already.
        if any(own.keys().isdisjoint(table) for own in forms.values()):
            continue
        names = tuple(next(name for name in own if name in table) for own in forms.values())
        if names in looked_at or len(set(names)) < len(forms):
            continue
        looked_at.add(names)
        query = {name: own[name] for name, own in zip(names, forms.values(), strict=True)}
        missed = [
            (column, name)
            for column, (name, vector) in zip(forms, query.items(), strict=True)
            if vector is None
        ]
        for column, name in missed:
            untold.setdefault(column, {})[name] = None
        if not missed:
            told = {name: own.tolist() for name, own in query.items() if own is not None}
            found.setdefault(domain.positions(told), told)
    if untold and not found:
        column, levels = next(iter(untold.items()))
        raise WorkloadError(_not_told(domain, column, vectors[domain.position(column)], levels))
    return sorted(found.values(), key=lambda query: query.keys() != set(where))


def least_noisy_query(
    domain: Domain,
    where: Where,
    tables: Iterable[tuple[str, ...]],
    noise_of: Callable[[AttributeIndices], MarginalNoise],
) -> Where:
    """The query at the levels where its answer has the least variance; itself if no table has it.

    noise_of: the noise in the marginal of some attributes. Raises as `queries_at_levels`.
    """
    if domain.n_columns == len(domain):
        return where
    found = queries_at_levels(domain, where, tables)
    if len(found) < 2:
        return found[0] if found else where

    def variance(query: Where) -> float:
        noise = noise_of(domain.positions(query))
        vectors = noise.vectors(query)
        return noise.covariance(vectors, vectors)

    return min(found, key=variance)


def _at_levels(domain: Domain, index: int, vector: np.ndarray) -> dict[str, np.ndarray | None]:
    """A query on an attribute by its name and those of its levels; None where these do not tell."""
    forms: dict[str, np.ndarray | None] = {domain.names[index]: vector}
    for level in np.flatnonzero(domain.columns == index).tolist():
        if level == index:
            continue
        group = np.array(domain.attributes[level].index_of_values)
        numbers = np.zeros(int(domain.sizes[level]))
        numbers[group] = vector
        forms[domain.names[level]] = numbers if np.array_equal(numbers[group], vector) else None
    return forms


def _not_told(domain: Domain, column: str, vector: np.ndarray, levels: Iterable[str]) -> str:
    """The error of a query that none of these levels tells, with the nearest that are told."""
    attribute, names = domain[column], tuple(levels)
    text = (
        f"The tables have {column!r} by groups alone ({', '.join(names)}), and what is asked of it "
        "divides a group, so no table tells it."
    )
    within: dict[str, np.ndarray] = {}
    around: dict[str, np.ndarray] = {}
    for name in names if np.all(np.isin(vector, (0, 1))) else ():
        group = np.array(domain[name].index_of_values)
        sums, sizes = np.bincount(group, vector), np.bincount(group)
        within[name], around[name] = (sums == sizes)[group], (sums > 0)[group]
    nearest = [
        (name, selection)
        for options, best in ((within, max), (around, min))
        if options
        for name, selection in [best(options.items(), key=lambda option: int(option[1].sum()))]
        if 0 < int(selection.sum()) < attribute.size
    ]
    told = [f"{column}={_text(attribute, own)} (of {name})" for name, own in nearest]
    if not told:
        return f"{text} Ask for whole groups."
    return f"{text} The nearest that they tell: {', '.join(told)}; ask for one of these."


def _text(attribute: Attribute, selection: np.ndarray) -> str:
    """Selected values as a question names them: "0..17,65..114"; of many the first."""
    labels, texts = attribute.labels(), []
    for is_selected, run in groupby(range(attribute.size), key=selection.__getitem__):
        if not is_selected:
            continue
        places = list(run)
        ordered = [place for place in places if place < attribute.n_ordered]
        if len(ordered) > 2:
            texts.append(f"{labels[ordered[0]]}..{labels[ordered[-1]]}")
            places = places[len(ordered) :]
        texts += [labels[place] for place in places]
    return ",".join([*texts[:_MOST_NAMED], *(["…"] if len(texts) > _MOST_NAMED else [])])
