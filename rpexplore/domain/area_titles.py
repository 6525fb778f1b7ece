"""What areas are called, and the way to them from the top."""

from rpexplore.domain.area_tree import AreaTree


def area_title(tree: AreaTree, area: int) -> str:
    """What an area is called: its name and code, or its code; the top by its level."""
    code = tree.codes[area].as_py()
    if area == 0 and not code:
        return tree.levels[0]
    name = "" if tree.names is None else tree.names[area].as_py()
    return f"{name} ({code})" if name else code


def distinct_titles(tree: AreaTree, areas: list[int]) -> list[str]:
    """What some areas of a level are called, with the codes above where two were called alike."""
    titles = [area_title(tree, area) for area in areas]
    if len(set(titles)) == len(titles):
        return titles
    return [
        f"{title}, {' > '.join(tree.path(area))}" for title, area in zip(titles, areas, strict=True)
    ]


def areas_above(tree: AreaTree, area: int) -> list[int]:
    """The areas that an area lies in, from the top, and itself."""
    above = [area]
    while tree.parents[above[-1]] >= 0:
        above.append(int(tree.parents[above[-1]]))
    return above[::-1]
