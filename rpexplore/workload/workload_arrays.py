"""The arrays of a workload: checked, and in the one order and form in which it keeps them."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rpexplore.common.numbers import shown, shown_value
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases import Basis, to_json
from rpexplore.workload.bases.sums import default_basis
from rpexplore.workload.targets import Target

if TYPE_CHECKING:
    from rpexplore.workload.workload import Workload


Bases: TypeAlias = tuple[tuple[Basis, ...], ...]  # of each attribute of a domain


def canonical_arrays(
    domain: Domain,
    members: np.ndarray,
    weights: np.ndarray,
    targets: np.ndarray,
    bases: Bases,
    basis_index: np.ndarray,
    required: np.ndarray,
) -> dict[str, Any]:
    """The fields of a `Workload`, which describes them, but its domain: checked and sorted."""
    members = np.asarray(members, dtype=np.int32)
    if len(members) == 0:
        raise WorkloadError("A workload needs at least one table, got none.")
    if members.ndim != 2 or {np.shape(weights), np.shape(targets)} != {(len(members),)}:
        raise WorkloadError(
            "A workload needs a weight and a target for each row of members, got the shapes "
            f"{np.shape(weights)}, {np.shape(targets)} and {members.shape}."
        )
    padded_last = np.where(members < 0, np.iinfo(np.int32).max, members)
    # Rows are ascending attribute indices, then −1.
    if np.any(members >= len(domain)) or np.any(members < -1):
        raise WorkloadError(
            f"The indices of attributes must be 0 … {len(domain) - 1}, with −1 behind them."
        )
    ascending = (padded_last[:, 1:] > padded_last[:, :-1]) | (members[:, 1:] < 0)
    if not np.all(ascending):
        row, column = np.argwhere(~ascending)[0]
        raise WorkloadError(
            f"The attribute {domain.names[members[row, column + 1]]!r} must stand once in a table, "
            "where the domain's order has it, without gaps before it."
        )
    _refuse_two_levels(domain, members)
    _refuse_two_amounts(domain, members)
    order = np.lexsort((*padded_last.T[::-1], np.count_nonzero(members >= 0, axis=1)))
    basis_index = np.asarray(basis_index, dtype=np.int32)
    if basis_index.shape == members.shape:  # there may be none; any other shape is refused
        basis_index = basis_index[order]
    arrays = {
        "weights": np.asarray(weights, dtype=float)[order],
        "targets": np.asarray(targets, dtype=float)[order],
        "required": _required_of_all(required, len(members))[order],
        "members": (members := np.ascontiguousarray(members[order])),
    }
    same = np.all(members[1:] == members[:-1], axis=1)
    if np.any(same):
        raise WorkloadError(
            f"The table {domain.describe(members[np.argmax(same)])} is in the workload "
            "twice; keep one of them, and give it more weight if it is important."
        )
    bases, arrays["basis_index"] = canonical_bases(domain, members, bases, basis_index)
    _refuse_unusable(domain, members, arrays["weights"], "weight", allow_nan=False)
    _refuse_unusable(domain, members, arrays["targets"], "target standard error", allow_nan=True)
    missing = arrays["required"] & np.isnan(arrays["targets"])
    if np.any(missing):
        raise WorkloadError(
            f"The table {domain.describe(members[np.argmax(missing)])} must meet its "
            "target but has none; give it one, or do not require it."
        )
    for array in arrays.values():
        array.setflags(write=False)
    return arrays | {"bases": bases}


def _refuse_two_levels(domain: Domain, members: np.ndarray) -> None:
    """Raise `WorkloadError` for a table that has an attribute at two of its levels."""
    if domain.n_columns == len(domain):
        return
    columns = np.sort(np.append(domain.columns, -1)[members], axis=1)
    twice = (columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)
    if np.any(twice):
        row, column = np.argwhere(twice)[0]
        raise WorkloadError(
            f"The table {domain.describe(members[row])} has the attribute "
            f"{domain.names[columns[row, column]]!r} at two levels; keep the finer one, from which "
            "the other follows."
        )


def _refuse_two_amounts(domain: Domain, members: np.ndarray) -> None:
    """Raise `WorkloadError` for a table that has two attributes of amounts, or two of weights."""
    weights = set(domain.weights)
    for noun, of_noun in (("amounts", set(domain.amounts) - weights), ("weights", weights)):
        if len(of_noun) < 2:
            continue
        has_one = np.isin(members, list(of_noun))
        row = int(np.argmax(np.sum(has_one, axis=1)))
        if np.sum(has_one[row]) > 1:
            first, second, *_ = members[row][has_one[row]].tolist()
            raise WorkloadError(
                f"The table {domain.describe(members[row])} has the {noun} "
                f"{domain.names[first]!r} and {domain.names[second]!r}, and adds up one of them, "
                "in whose unit its target is; ask for a table of each."
            )


def _required_of_all(required: np.ndarray, count: int) -> np.ndarray:
    """Whether targets are required, as bool[count]; none where they are left out."""
    required = np.asarray(required)
    if required.shape == (0,):
        return np.zeros(count, dtype=bool)
    if required.shape != (count,) or required.dtype != bool:
        raise WorkloadError(
            f"The required marks of {count} tables must be {count} times true or false, got "
            f"{required.dtype} in the shape {required.shape}."
        )
    return required


def _refuse_unusable(
    domain: Domain, members: np.ndarray, values: np.ndarray, noun: str, *, allow_nan: bool
) -> None:
    usable = (np.isfinite(values) & (values > 0)) | (np.isnan(values) & allow_nan)
    if not np.all(usable):
        row = int(np.argmin(usable))
        raise WorkloadError(
            f"The {noun} of table {domain.describe(members[row])} must be a positive number, "
            f"got {values[row]}; leave it out if it is not wanted."
        )


def numbers(values: Sequence[float | None], noun: str) -> np.ndarray:
    """Values as float64[len(values)], None as NaN."""
    found = []
    for value in values:
        try:
            found.append(math.nan if value is None else float(value))
        except (TypeError, ValueError):
            raise WorkloadError(
                f"The {noun} of tables must be numbers, got {shown_value(value)}."
            ) from None
    return np.array(found, dtype=float)


def standard_errors(targets: Sequence[Target | float | None]) -> np.ndarray:
    """Targets as standard errors, float64[len(targets)], None as NaN."""
    return numbers(
        [target.standard_error if isinstance(target, Target) else target for target in targets],
        "targets",
    )


def required_marks(values: Sequence[bool]) -> np.ndarray:
    """Whether targets have to be met, as bool[len(values)]."""
    for value in values:
        if not isinstance(value, bool | np.bool_):
            raise WorkloadError(
                f"The required marks of tables must be true or false, got {shown(value)}."
            )
    return np.array(values, dtype=bool)


def setting_arrays(
    count: int,
    weights: Sequence[float] | None = None,
    targets: Sequence[Target | float | None] | None = None,
    required: Sequence[bool] | None = None,
) -> dict[str, Any]:
    """Weights, targets and required marks of `count` tables, by name; 1, none, no if left out.

    Raises `WorkloadError` if there are not as many of them as tables.
    """
    for name, given in (("weights", weights), ("targets", targets), ("required", required)):
        if given is not None and len(given) != count:
            raise WorkloadError(f"There are {count} tables but {len(given)} {name}.")
    # Arrays at once where nothing is stated: builders make a million tables.
    if required is None and targets is not None:
        required = [isinstance(target, Target) and target.required for target in targets]
    return {
        "weights": np.ones(count) if weights is None else numbers(weights, "weights"),
        "targets": np.full(count, np.nan) if targets is None else standard_errors(targets),
        "required": np.zeros(count, bool) if required is None else required_marks(required),
    }


# ---- bases


def canonical_bases(
    domain: Domain, members: np.ndarray, bases: Bases, basis_index: np.ndarray
) -> tuple[Bases, np.ndarray]:
    """Bases and their indices with only those that some table has, single values first.

    Args as of `Workload`; where there are no bases, the indices are not looked at.

    Raises `WorkloadError` for shapes that do not fit, an index that is not in its list, and a basis
    that its attribute cannot have.
    """
    canonical, moved = [], np.where(members < 0, -1, 0).astype(np.int32)
    if all(basis.is_identity for listed in bases for basis in listed) and not (
        bases and domain.amounts
    ):
        used = set(np.unique(members).tolist())
        listed = enumerate(domain.attributes)
        return tuple((default_basis(one),) if index in used else () for index, one in listed), moved
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
        # Sums of the attribute's own limits, however those are written (40.0000), have its text.
        usual = default_basis(attribute)
        kept = [listed[index] for index in used.tolist()]
        kept = [usual if basis == usual else basis for basis in kept]
        by_text = sorted(kept, key=lambda basis: json.dumps(to_json(basis), sort_keys=True))
        distinct = tuple(dict.fromkeys(sorted(by_text, key=lambda basis: not basis.is_identity)))
        moved[where] = np.array([distinct.index(basis) for basis in kept], dtype=np.int32)[inverse]
        canonical.append(distinct)
    for attribute, listed in zip(domain, canonical, strict=True):
        for basis in listed:
            _check(basis, attribute)
    return tuple(canonical), moved


def changed_bases(
    workload: "Workload", changes: Mapping[str, Basis], tables: Iterable[AttributeSet] | None
) -> dict[str, Any]:
    """`bases` and `basis_index` where attributes have other bases in these tables, or in all.

    Raises `WorkloadError` for what is no basis, or a table that does not have the attribute.
    """
    domain, members = workload.domain, workload.members
    basis_index, listed = workload.basis_index.copy(), list(workload.bases)
    chosen = np.full(len(members), tables is None)
    chosen[[workload.position(table) for table in tables or ()]] = True
    for name, basis in changes.items():
        if not isinstance(basis, Basis):
            raise WorkloadError(
                f"The basis of {name!r} must be one of the library's, such as Prefix(), got "
                f"{type(basis).__name__}."
            )
        attribute_index = domain.position(name)
        where = (members == attribute_index) & chosen[:, None]
        lacking = chosen & ~np.any(where, axis=1)
        if tables is not None and np.any(lacking):
            raise WorkloadError(
                f"The table {domain.describe(members[np.argmax(lacking)])} does not have the "
                f"attribute {name!r}; name it for tables that do."
            )
        basis_index[where] = len(listed[attribute_index])
        listed[attribute_index] = (*listed[attribute_index], basis)
    return {"bases": tuple(listed), "basis_index": basis_index}


@lru_cache(maxsize=1000)
def _check(basis: Basis, attribute: Attribute) -> None:
    """`Basis.check`, once: workloads are made anew with every change of a weight."""
    basis.check(attribute)
