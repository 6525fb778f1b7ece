"""Which of its attribute's bases each table has, in the one form that a workload keeps."""

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
    """Bases and their indices with only those that some table has, single values first.

    Args as of `Workload`; where there are no bases, the indices are not looked at.

    Raises `WorkloadError` for shapes that do not fit, an index that is not in its list, and a basis
    that its attribute cannot have.
    """
    canonical, moved = [], np.where(members < 0, -1, 0).astype(np.int32)
    if all(basis.is_identity for listed in bases for basis in listed):
        used = set(np.unique(members).tolist())
        return tuple((Identity(),) if index in used else () for index in range(len(domain))), moved
    if len(bases) != len(domain) or basis_index.shape != members.shape:
        raise WorkloadError(
            f"The bases must be given for each of {len(domain)} attributes, and their indices in "
            f"the shape of members, {members.shape}; got {len(bases)} and {basis_index.shape}."
        )
    for attribute_index, (attribute, listed) in enumerate(zip(domain, bases, strict=True)):
        where = members == attribute_index
        used, inverse = np.unique(basis_index[where], return_inverse=True)
        if len(used) and not 0 <= used[0] <= used[-1] < len(listed):
            raise WorkloadError(
                f"A table has {attribute.name!r} in a basis that is not in the list of its bases."
            )
        kept = [listed[index] for index in used.tolist()]
        distinct = tuple(dict.fromkeys(sorted(kept, key=_rank)))
        moved[where] = np.array([distinct.index(basis) for basis in kept], dtype=np.int32)[inverse]
        canonical.append(distinct)
    for attribute, listed in zip(domain, canonical, strict=True):
        for basis in listed:
            _check(basis, attribute)
    return tuple(canonical), moved


def changed_bases(
    domain: Domain,
    members: np.ndarray,
    bases: Bases,
    basis_index: np.ndarray,
    changes: Mapping[int, Basis],
    rows: Sequence[int] | None,
) -> tuple[Bases, np.ndarray]:
    """Bases and their indices where attributes have other bases, not yet canonical.

    changes: attribute index -> its basis now. rows: the tables in which it has that; None: all.
    Raises `WorkloadError` for what is no basis, or a table that does not have the attribute.
    """
    basis_index, listed = basis_index.copy(), list(bases)
    chosen = np.full(len(members), rows is None)
    chosen[list(rows or [])] = True
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
