"""Which of its attribute's bases each table asks, in the one form that a workload keeps."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.attribute_sets import describe_row
from rpexplore.workload.bases import Basis, Identity, to_json

Bases = tuple[tuple[Basis, ...], ...]


def canonical_bases(
    domain: Domain, members: np.ndarray, bases: Bases, basis_index: np.ndarray
) -> tuple[Bases, np.ndarray]:
    """Bases and their indices with only what some table asks, single values first.

    members  int32[n_tables, max_order]: attribute places of each table, −1 behind
    bases    for each attribute, the ways it may be asked; where all are single values, or there
             are none, the ways are not looked at
    basis_index  int32[n_tables, max_order]: place of a basis in its attribute's list

    Raises `WorkloadError` for shapes that do not fit, a way that is not listed, and a basis that
    cannot be asked of its attribute.
    """
    size = len(domain)
    if all(basis.is_identity for listed in bases for basis in listed):
        used = set(np.unique(members).tolist())
        single = tuple((Identity(),) if place in used else () for place in range(size))
        return single, np.where(members < 0, -1, 0).astype(np.int32)
    if len(bases) != size or basis_index.shape != members.shape:
        raise WorkloadError(
            f"The bases must be given for each of {size} attributes, and the ways in the shape of "
            f"members, {members.shape}; got {len(bases)} and {basis_index.shape}."
        )
    settled, moved = [], np.full(members.shape, -1, dtype=np.int32)
    for place, listed in enumerate(bases):
        where = members == place
        asked, found = np.unique(basis_index[where], return_inverse=True)
        if len(asked) and not 0 <= asked[0] <= asked[-1] < len(listed):
            raise WorkloadError(
                f"A table asks {domain.names[place]!r} in a way that is not listed."
            )
        kept = [listed[way] for way in asked.tolist()]
        distinct = tuple(dict.fromkeys(sorted(kept, key=_rank)))
        moved[where] = np.array([distinct.index(basis) for basis in kept], dtype=np.int32)[found]
        settled.append(distinct)
    for attribute, listed in zip(domain, settled, strict=True):
        for basis in listed:
            _check(basis, attribute)
    return tuple(settled), moved


def changed_bases(
    domain: Domain,
    members: np.ndarray,
    bases: Bases,
    basis_index: np.ndarray,
    changes: Mapping[int, Basis],
    rows: Sequence[int] | None,
) -> tuple[Bases, np.ndarray]:
    """Bases and their indices where attributes are asked otherwise, not yet canonical.

    Args:
        domain: the attributes.
        members: int32[n_tables, max_order], the attribute indices of each table, −1 behind.
        bases: for each attribute, how it is asked.
        basis_index: int32[n_tables, max_order], of each attribute's list, −1 behind.
        changes: attribute index -> how it is asked now.
        rows: the tables in which it is; None: all that have the attribute.

    Raises:
        WorkloadError: what is no basis, or a table that does not have the attribute.
    """
    basis_index, listed = basis_index.copy(), list(bases)
    chosen = np.full(len(members), rows is None)
    chosen[[] if rows is None else list(rows)] = True
    for attribute_index, basis in changes.items():
        name = domain.names[attribute_index]
        if not isinstance(basis, Basis):
            raise WorkloadError(
                f"The basis of {name!r} must be one of the library's, such as Prefix(), got "
                f"{type(basis).__name__}."
            )
        where = (members == attribute_index) & chosen[:, None]
        lacking = chosen & ~np.any(where, axis=1)
        if rows is not None and np.any(lacking):
            raise WorkloadError(
                f"The table {describe_row(domain, members, int(np.argmax(lacking)))} does not "
                f"have the attribute {name!r}; name it for tables that do."
            )
        basis_index[where] = len(listed[attribute_index])
        listed[attribute_index] = (*listed[attribute_index], basis)
    return tuple(listed), basis_index


def _rank(basis: Basis) -> tuple[bool, str]:
    """Single values first, then by their description."""
    return not basis.is_identity, json.dumps(to_json(basis), sort_keys=True)


@lru_cache(maxsize=1000)
def _check(basis: Basis, attribute: Attribute) -> None:
    """`Basis.check`, once: workloads are made anew with every change of a weight."""
    basis.check(attribute)
