"""What areas are called, and the way to them from the top."""

from collections import Counter

from rpexplore.domain.area_tree import AreaTree


def area_title(tree: AreaTree, area: int) -> str:
    """The title of an area: its name and code, or its code; the top's level."""
    code = tree.codes[area].as_py()
    if area == 0 and not code:
        return tree.levels[0]
    name = "" if tree.names is None else tree.names[area].as_py()
    return f"{name} ({code})" if name else code


def distinct_codes(tree: AreaTree, areas: list[int]) -> list[str]:
    """The own codes of some areas, or those from the top where two have the same."""
    codes = [tree.codes[area].as_py() or tree.levels[0] for area in areas]
    if len(set(codes)) == len(codes):
        return codes
    return [" > ".join(tree.path(area)) for area in areas]


def distinct_titles(tree: AreaTree, areas: list[int]) -> list[str]:
    """The titles of some areas, or their codes where two have the same: "X (1)" may be a code."""
    titles = [area_title(tree, area) for area in areas]
    return titles if len(set(titles)) == len(titles) else distinct_codes(tree, areas)


def distinct_names(tree: AreaTree, areas: list[int]) -> list[str] | None:
    """The names of some areas, with codes where two are called alike; None where none has one."""
    names = [] if tree.names is None else [tree.names[area].as_py() or "" for area in areas]
    if not any(names):
        return None
    codes = distinct_codes(tree, areas)
    counts = Counter(names)
    return [
        name if name and counts[name] == 1 else f"{name} ({code})" if name else code
        for name, code in zip(names, codes, strict=True)
    ]


def areas_above(tree: AreaTree, area: int) -> list[int]:
    """The areas that an area lies in, from the top, and itself."""
    above = [area]
    while tree.parents[above[-1]] >= 0:
        above.append(int(tree.parents[above[-1]]))
    return above[::-1]
