"""Hierarchies in .hrc files, as τ-ARGUS and R's sdcTable and sdcHierarchies write them.

A line a code, with an @ in front for each level above it; the total is left out:

    North
    @N1
    @N2
    South
    @S1

A code with none below it is a value of an attribute; those above it are the groups that it lies
in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rpexplore.common.numbers import shown, shown_few
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError

ENDING = ".hrc"
_LEVEL = "@"


@dataclass(frozen=True)
class HierarchyFile:
    """The groups in a file.

    paths  by value, the groups that it lies in, coarsest first
    """

    filename: str
    paths: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, text: str, filename: str) -> "HierarchyFile":
        """The groups in the text of a file.

        A single code above all others is the total, and no group.

        Raises:
            DomainError: For a line without a code or more than a level below the one before it, a
                value that is there twice, and a file with one level only.
        """
        nodes = _nodes(text, filename)
        levels = [level for _, level, _ in nodes]
        paths: dict[str, tuple[str, ...]] = {}
        above: list[str] = []  # the code of the line before, and in front of it those above
        for (line, level, code), level_after in zip(nodes, [*levels[1:], 0], strict=False):
            if level > len(above):
                raise DomainError(
                    f"{line} is on level {level + 1:,}, where {len(above) + 1:,} is the deepest "
                    "that can follow; leave no level out."
                )
            above[level:] = [code]
            if level_after > level:
                continue
            if code in paths:
                raise DomainError(f"{line} has the code {shown(code)} again; keep one of them.")
            paths[code] = tuple(above[:-1])
        if levels.count(0) == 1:
            paths = {code: path[1:] for code, path in paths.items()}
        if not any(paths.values()):
            raise DomainError(
                f"{filename} has codes of one level only; begin those below others with {_LEVEL}."
            )
        return cls(filename, paths)

    def grouped(self, attribute: Attribute) -> Attribute:
        """The attribute with these groups; values that are not in the file keep their own.

        Raises `DomainError` for codes that are no values of the attribute.
        """
        values = attribute.stored_values()
        strangers = sorted(self.paths.keys() - set(values))
        if strangers:
            raise DomainError(
                f"{self.filename} has codes that are no values of {attribute.name!r} "
                f"({shown_few(strangers)}); add them in the codebook, or take them out of the file."
            )
        groups = attribute.groups or ((),) * attribute.size
        present = zip(values, groups, strict=True)
        return replace(
            attribute, groups=tuple(self.paths.get(value, group) for value, group in present)
        )

    def fitting(self, domain: Domain) -> list[str]:
        """The attributes that have all codes as values, those with the fewest others first."""
        codes = set(self.paths)
        fitting = [a for a in domain if a.size >= len(codes) and codes <= {*a.stored_values()}]
        return [attribute.name for attribute in sorted(fitting, key=lambda a: a.size)]


def with_hierarchy(domain: Domain, name: str, file: HierarchyFile) -> Domain:
    """The domain with the groups of the file for the attribute of this name."""
    attribute = domain[name]
    grouped = file.grouped(attribute)
    return domain.with_attributes(grouped if one is attribute else one for one in domain)


def _nodes(text: str, filename: str) -> list[tuple[str, int, str]]:
    """For each line its name in errors, the levels above its code, and the code."""
    nodes = []
    # Not splitlines: codes may hold what Unicode calls a line separator.
    for number, row in enumerate(text.split("\n"), start=1):
        code = row.strip().lstrip(_LEVEL)
        level = len(row.strip()) - len(code)
        if code.strip():
            nodes.append((f"{filename}, line {number:,},", level, code.strip()))
        elif level:
            raise DomainError(
                f"{filename}, line {number:,}, has no code; write one behind {_LEVEL}."
            )
    return nodes
