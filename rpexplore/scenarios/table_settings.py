"""Settings: weights and targets of tables, one by one or by group."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rpexplore.common.json_fields import check_keys
from rpexplore.common.numbers import shown, shown_value
from rpexplore.common.text import rounded
from rpexplore.errors import WorkloadError
from rpexplore.workload.table_text import Table
from rpexplore.workload.targets import Target, target_of
from rpexplore.workload.workload import Workload

_MANY = 20  # tables with the same weight or target, from which on they make a group


@dataclass(frozen=True)
class TableSetting:
    """What a curator asks of one table beyond having it.

    weight  how much it counts; None: what its groups give it, or else what it has without them
    target  the wanted accuracy of its cells, a number being a standard error; None: what its groups
            give it, or else none

    Raises `WorkloadError` for a weight that is not positive, and a target that is none.
    """

    attributes: Table
    weight: float | None = None
    target: Target | None = None

    def __post_init__(self) -> None:
        _check_positive("weight", self.weight, self.attributes)
        try:
            object.__setattr__(self, "target", target_of(self.target))
        except WorkloadError as error:
            problem = str(error).removeprefix("The target")
            raise WorkloadError(f"The target of {_names(self.attributes)}{problem}") from None

    @property
    def is_plain(self) -> bool:
        """Whether it asks for nothing."""
        return self.weight is None and self.target is None

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"target": self.target and self.target.to_json()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "TableSetting":
        check_keys(content, ("attributes", "weight", "target"), "each of the settings")
        return cls(**{**content, "attributes": names_of(content["attributes"])})


@dataclass(frozen=True)
class GroupSetting:
    """What a curator asks of all tables with these attributes: "all tables with region: 2×".

    containing  the attributes; () for all tables
    weight      how much they count, in place of what earlier groups gave
    factor      or: by how much that is multiplied
    target      the wanted accuracy of their cells, a number being a standard error

    Raises `WorkloadError` for a number that is not positive.
    """

    containing: Table
    weight: float | None = None
    factor: float | None = None
    target: Target | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", target_of(self.target))
        _check_positive("weight", self.weight, self.containing)
        _check_positive("factor", self.factor, self.containing)
        if self.weight is not None and self.factor is not None:
            raise WorkloadError("A group of tables has a weight or a factor, not both.")

    @property
    def is_plain(self) -> bool:
        """Whether it asks for nothing."""
        return self.weight is None and self.factor in (None, 1.0) and self.target is None

    @property
    def text(self) -> str:
        """What it asks for: "All tables with region: weight × 2, target ±50 at 95 %"."""
        tables = f"All tables with {' and '.join(self.containing)}".removesuffix(" with ")
        parts = []
        if self.weight is not None:
            parts.append(f"weight {rounded(self.weight, 6)}")
        if self.factor is not None:
            parts.append(f"weight × {rounded(self.factor, 6)}")
        if self.target is not None:
            required = ", required" if self.target.required else ""
            parts.append(f"target {self.target.description}{required}")
        return f"{tables}: {', '.join(parts)}"

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"target": self.target and self.target.to_json()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "GroupSetting":
        check_keys(content, ("containing", "weight", "factor", "target"), "each of the groups")
        return cls(**{**content, "containing": names_of(content["containing"])})


def changed_settings(
    groups: Sequence[GroupSetting],
    settings: Iterable[TableSetting],
    changed: Iterable[TableSetting],
    default_weight: float = 1.0,
) -> tuple[TableSetting, ...]:
    """The settings of single tables after some have changed; what the groups give is not kept.

    default_weight: of a table that its groups give none; NaN where each has another one
    """
    of_table = {setting.attributes: setting for setting in settings}
    for setting in changed:
        weight, target = given(groups, setting.attributes, default_weight)
        of_table[setting.attributes] = replace(
            setting,
            weight=None if setting.weight == weight else setting.weight,
            target=None if setting.target == target else setting.target,
        )
    return tuple(setting for setting in of_table.values() if not setting.is_plain)


def changed_groups(
    groups: Sequence[GroupSetting], settings: Iterable[TableSetting], group: GroupSetting
) -> tuple[tuple[GroupSetting, ...], tuple[TableSetting, ...]]:
    """Groups and settings of single tables after a group was set, whose tables all follow it."""
    followed = []
    for setting in settings:
        if set(group.containing) <= set(setting.attributes):
            if group.weight is not None:
                setting = replace(setting, weight=None)
            elif group.factor is not None and setting.weight is not None:
                setting = replace(setting, weight=setting.weight * group.factor)
            if group.target is not None:
                setting = replace(setting, target=None)
        followed.append(setting)
    earlier = [_without_overruled(before, group) for before in groups]
    earlier = [before for before in earlier if not before.is_plain]
    if earlier and earlier[-1].containing == group.containing:
        group = _merged(earlier.pop(), group)
    latest = () if group.is_plain else (group,)
    return (*earlier, *latest), tuple(setting for setting in followed if not setting.is_plain)


def settings_of(workload: Workload) -> tuple[tuple[GroupSetting, ...], tuple[TableSetting, ...]]:
    """A workload's weights and targets; those of most tables as a group."""
    weights, targets, required = workload.weights, workload.targets, workload.required
    weight = float(_commonest(weights)) if np.count_nonzero(weights != 1) > _MANY else 1.0
    own_weight, own_target = weights != weight, ~np.isnan(targets)
    target = None
    # A single table could not be without a target that its group has.
    if len(workload) > _MANY and np.all(own_target):
        common, is_required = _commonest(np.column_stack([targets, required])).tolist()
        target = Target(common, required=bool(is_required))
        own_target = (targets != common) | (required != target.required)
    settings = tuple(
        TableSetting(
            workload.tables[row],
            float(weights[row]) if own_weight[row] else None,
            Target(float(targets[row]), required=bool(required[row])) if own_target[row] else None,
        )
        for row in np.flatnonzero(own_weight | own_target).tolist()
    )
    group = GroupSetting((), weight=None if weight == 1 else weight, target=target)
    return (() if group.is_plain else (group,)), settings


def _commonest(values: np.ndarray) -> np.ndarray:
    """The row that there is most often."""
    distinct, counts = np.unique(values, axis=0, return_counts=True)
    return distinct[np.argmax(counts)]


def given(
    groups: Sequence[GroupSetting], table: Table, default_weight: float = 1.0
) -> tuple[float, Target | None]:
    """The weight and the target that the groups give a table."""
    weight, target = default_weight, None
    for group in groups:
        if set(group.containing) <= set(table):
            weight = (weight if group.weight is None else group.weight) * (group.factor or 1.0)
            target = target if group.target is None else group.target
    return weight, target


def _without_overruled(earlier: GroupSetting, later: GroupSetting) -> GroupSetting:
    """What is left of a group after one that sets the same for all its tables, and maybe others."""
    if not set(later.containing) <= set(earlier.containing):
        return earlier
    if later.weight is not None:
        earlier = replace(earlier, weight=None, factor=None)
    return earlier if later.target is None else replace(earlier, target=None)


def _merged(earlier: GroupSetting, later: GroupSetting) -> GroupSetting:
    """Two settings of one group as one."""
    weight, factor = earlier.weight, earlier.factor
    if later.weight is not None:
        weight, factor = later.weight, None
    elif weight is not None:
        weight *= later.factor or 1.0
    elif later.factor is not None:
        factor = (factor or 1.0) * later.factor
    target = earlier.target if later.target is None else later.target
    return GroupSetting(later.containing, weight, None if factor == 1.0 else factor, target)


def names_of(names: Any) -> Table:
    """Attribute names read from a file; a text by itself would be taken letter by letter."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise WorkloadError(f"attributes must be a list of names, got {shown_value(names)}.")
    return tuple(names)


def _check_positive(noun: str, value: Any, table: Table) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < value <= sys.float_info.max):
        raise WorkloadError(
            f"The {noun} of {_names(table)} must be a positive number, got {shown(value)}."
        )


def _names(table: Table) -> str:
    return f"({' × '.join(table) or 'total'})"
