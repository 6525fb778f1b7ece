"""Recodes of areas: codes in records that no area of a tree has, such as former municipalities."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np

from rpexplore.common.numbers import read_only, shown, shown_few
from rpexplore.domain.area_tree import AreaRecodes, AreaTree
from rpexplore.domain.recodes import texts_of_key
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_CODES = 200_000  # that recodes stand for


def recoded(tree: AreaTree, recodes: Mapping[str, Mapping[str, str]]) -> AreaTree:
    """The tree with recodes in the place of its own, as `AreaTree.with_recodes` says."""
    areas: list[int] = []
    texts: list[str] = []
    n_codes = 0
    levels = list(tree.levels[1:])
    for level, recode in recodes.items():
        if level not in levels:
            raise DomainError(
                f"Codes of the level {level!r} are recoded, which the areas do not have; name one "
                f"of {shown_few(levels)}."
            )
        numbers = _numbers_of_codes(tree, tree.levels.index(level))
        targets: dict[str, int] = {}
        for key, code in recode.items():
            target = _target(tree, numbers, level, key, normalize("NFC", code), recode)
            for text in texts_of_key(key):
                n_codes += 1
                if n_codes > _MOST_CODES:
                    raise DomainError(
                        f"Its recodes stand for more than {_MOST_CODES:,} codes; give shorter "
                        f"ranges than {shown(key)!r} of the level {level!r}."
                    )
                text = normalize("NFC", text.strip())
                if not text:
                    raise DomainError(
                        f"A code of the level {level!r} that is recoded must have a sign, got "
                        f"{key!r}; an area that is missing cannot be recoded."
                    )
                if text in numbers:
                    raise DomainError(
                        f"It recodes {shown(text)!r} of the level {level!r} to {shown(code)!r}, "
                        "and the areas have both; take the first one out of the areas, or leave "
                        "the recode out."
                    )
                if targets.setdefault(text, target) != target:
                    raise DomainError(
                        f"It recodes {shown(text)!r} of the level {level!r} to two areas; keep one "
                        "of them."
                    )
        areas += targets.values()
        texts += targets
    if not areas:
        return replace(tree, recodes=None)
    return replace(tree, recodes=_in_order(np.array(areas), texts))


def _in_order(areas: np.ndarray, texts: Sequence[str]) -> AreaRecodes:
    import pyarrow as pa

    order = sorted(range(len(texts)), key=lambda place: (areas[place], texts[place].encode()))
    codes = pa.array([texts[place] for place in order], pa.string())
    return AreaRecodes(read_only(areas[order].astype(np.int32)), codes)


def _numbers_of_codes(tree: AreaTree, level: int) -> dict[str, list[int]]:
    """The areas of a level that have each code, empty ones too."""
    own = np.arange(tree.n_areas)[tree.level_slice(level)].tolist()
    if tree.empty is not None:
        own += (tree.n_areas + np.flatnonzero(tree.empty.levels == level)).tolist()
    numbers: dict[str, list[int]] = {}
    for area in own:
        code = tree.all_codes[area].as_py()
        numbers.setdefault(code, []).append(area if area < tree.n_areas else -1)
    return numbers


def _target(
    tree: AreaTree,
    numbers: Mapping[str, Sequence[int]],
    level: str,
    key: str,
    code: str,
    recode: Mapping[str, str],
) -> int:
    """The area that a code is recoded to; `DomainError` unless there is exactly one."""
    found = numbers.get(code, [])
    told = f"It recodes {shown(key)!r} of the level {level!r} to {shown(code)!r}, "
    if not found and code in recode:
        raise DomainError(
            f"{told}which it recodes itself; recode {shown(key)!r} to {shown(recode[code])!r}."
        )
    if not found:
        others = [
            name
            for place, name in enumerate(tree.levels[1:], 1)
            if name != level and code in _numbers_of_codes(tree, place)
        ]
        if others:
            raise DomainError(
                f"{told}which is an area of the level {others[0]!r}; state the recode for that "
                "level."
            )
        raise DomainError(
            f"{told}which is no area of this level; correct the code, or add the area to the areas."
        )
    if len(found) > 1:
        raise DomainError(
            f"{told}which {len(found):,} areas of this level are called; give these areas codes "
            "that no two of them share."
        )
    if found[0] < 0:
        raise DomainError(
            f"{told}which is stated to be empty; take its mark out, or name another area."
        )
    return found[0]


def recodes_of_rows(tree: AreaTree, areas: np.ndarray, codes: "pa.Array") -> AreaRecodes:
    """The recodes that a file holds; raises `DomainError` unless `recoded` could have made them."""
    below = areas[(areas < 1) | (areas >= tree.n_areas)]
    if len(below):
        raise DomainError("Its recodes must be of areas of the tree below the top.")
    stated: dict[str, dict[str, str]] = {}
    for area, code in zip(areas.tolist(), codes.to_pylist(), strict=True):
        level = tree.levels[int(tree.level_of[area])]
        stated.setdefault(level, {})[code] = tree.codes[area].as_py()
    made = recoded(tree, stated).recodes
    if made is None or not (np.array_equal(made.areas, areas) and made.codes.equals(codes)):
        raise DomainError("Its recodes must be in the order of areas and codes, each once.")
    return made
