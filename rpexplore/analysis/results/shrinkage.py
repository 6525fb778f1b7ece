"""Fairness of smooth tables, in words: how far groups are from their unbiased counts.

What distances are, and which of them are clearly above 1, is in `postprocessing.group_distances`.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rpexplore.common.formatting import describe_share, joined, plural, rounded


def farthest_group(groups: pd.DataFrame) -> dict[str, Any]:
    """The row of the group that is farthest beyond what chance explains.

    groups: one row a group of an attribute, with distance and limit
    """
    rows = groups.to_dict("records")
    return max(rows, key=lambda group: group["distance"] - group["limit"])


def describe_groups(frame: pd.DataFrame, kind: str) -> str:
    """The group that was moved farthest, and the least; kind: "age", "smooth counts"."""
    by_distance = sorted(frame.to_dict("records"), key=lambda group: group["distance"])
    near, far = by_distance[0], by_distance[-1]
    parts = [_describe_far(far, kind)]
    if len(frame) > 1:
        parts.append(f"Nearest: {near['group']}, {rounded(near['distance'], 3, zeros=True)}.")
    return " ".join([*parts, _describe_above(frame)])


def describe_farthest(groups: pd.DataFrame) -> str:
    """Of the values of all attributes, the one that was moved farthest; as `farthest_group`."""
    far = farthest_group(groups)
    return f"{_describe_far(far, far['attribute'])} {_describe_above(groups)}"


def _describe_far(far: Mapping[str, Any], kind: str) -> str:
    return (
        f"Farthest from the unbiased counts: {kind} {far['group']}, "
        f"{rounded(far['distance'], 3, zeros=True)} standard errors in "
        f"{plural(far['cells'], 'cell')} (root mean square), with "
        f"{describe_share(far['outside_95'])} of these cells outside the 95 % interval."
    )


def _describe_above(frame: pd.DataFrame) -> str:
    """How many groups are clearly above 1, and what that means."""
    n_above = frame["clearly_above_1"].tolist().count("yes")
    if n_above:
        are = "is" if n_above == 1 else "are"
        return (
            f"{n_above:,} of {plural(len(frame), 'group')} {are} clearly above 1, where counts "
            "without any error would be: differences that are more than noise were smoothed away "
            "there, and the unbiased counts show them."
        )
    none = "It is not" if len(frame) == 1 else f"None of {plural(len(frame), 'group')} is"
    return (
        f"{none} clearly above 1, where counts without any error would be. That does not show "
        "that no difference was lost: nobody can see those that are smaller than the noise."
    )


def median_kept(kept: pd.DataFrame) -> dict[int, float]:
    """The share that the median table of each number of attributes keeps.

    kept: one row a measured residual, with order and share_kept
    """
    return kept.groupby("order")["share_kept"].median().to_dict()


def describe_kept(kept: pd.DataFrame) -> str:
    """Shares kept in the median table of each number of attributes; kept: as in `median_kept`."""
    parts = [
        f"{describe_share(share)} in tables of {plural(order, 'attribute')}"
        for order, share in median_kept(kept).items()
    ]
    return (
        "A smooth table is what all measurements together suggest for it, plus a share of what was "
        f"measured of it beyond that: {joined(parts)} (medians). The rest was taken for noise."
    )


def describe_gains(tables: pd.DataFrame) -> str:
    """In how many tables smoothing gains next to nothing.

    tables: one row each, with smoothing_gains
    """
    gains = tables["smoothing_gains"].tolist()
    n_none, n_known = gains.count("no"), gains.count("yes") + gains.count("no")
    if not n_known:
        return "Where smoothing gains next to nothing is not known: no table is of single values."
    if not n_none:
        return f"Smoothing gains accuracy in all of {plural(n_known, 'table')}, by its own errors."
    return (
        f"In {n_none:,} of {plural(n_known, 'table')} smoothing gains next to nothing: the "
        "model-based error is within 5 % of the standard error. Publish the unbiased counts there."
    )
