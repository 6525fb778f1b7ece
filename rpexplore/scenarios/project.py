"""Project: the scenarios of one question, its file, and the limits of a shared server."""

import io
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rpexplore.common.file_kinds import DAMAGED, ZIP, zip_of
from rpexplore.common.files import utf8_text
from rpexplore.common.json_fields import (
    SEAL,
    check_format,
    check_keys,
    list_of,
    loads,
    refusing,
    seal_of,
    sealed_text,
)
from rpexplore.common.numbers import whole_number
from rpexplore.common.server import Limits
from rpexplore.common.text import data_size, describe_count
from rpexplore.domain.area_tree_file import (
    AreaTreeReference,
    HeldTreeFiles,
    ReadTreeFile,
    no_tree_file,
    parquet_of_tree,
)
from rpexplore.errors import DomainError, LimitError, RpexploreError, WorkloadError
from rpexplore.scenarios.scenario import FORMAT_VERSION, NAME_LENGTH, Scenario, of_version_2

# ---- Project: the scenarios of one question, in the order of their author, one of them open.
#
# What the app keeps, saves and loads. Never holds a record.


FORMAT = "rpexplore-project"
_KEYS = ("format", "format_version", "open", "scenarios")
MOST_SCENARIOS = 100


@dataclass(frozen=True)
class Project:
    """Scenarios with distinct names; `open_index` is that of the open one.

    keys: a number for each scenario that stays its own when it is renamed or moved; not saved
    splits_anew: it was read from a file of version 1, in which sections that now share the budget
    of a scenario had all of it each

    Raises `WorkloadError` for no scenarios, too many, or a repeated name.
    """

    scenarios: tuple[Scenario, ...]
    open_index: int = 0
    keys: tuple[int, ...] = field(default=(), compare=False)
    splits_anew: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.scenarios):
            object.__setattr__(self, "keys", tuple(range(len(self.scenarios))))
        if not 1 <= len(self.scenarios) <= MOST_SCENARIOS:
            raise WorkloadError(
                f"A project holds 1 to {MOST_SCENARIOS} scenarios, got {len(self.scenarios)}; "
                "delete one that is not needed any more."
            )
        if whole_number(self.open_index) is None or not 0 <= self.open_index < len(self.scenarios):
            raise WorkloadError(
                f"The index of the open scenario must be 0 … {len(self.scenarios) - 1}, "
                f"got {self.open_index!r}."
            )
        for name in self.names:
            if self.names.count(name) > 1:
                raise WorkloadError(
                    f"There is a scenario named {name!r} already; choose another name."
                )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(scenario.name for scenario in self.scenarios)

    @property
    def name(self) -> str:
        """What to call it: the survey of its open scenario, or that scenario's name."""
        return self.current.survey or self.current.name

    @property
    def current(self) -> Scenario:
        """The open scenario."""
        return self.scenarios[self.open_index]

    @property
    def areas(self) -> dict[str, AreaTreeReference]:
        """The areas of the scenarios by their SHA-256, one that is read where there are several."""
        studies = [scenario.areas for scenario in self.scenarios if scenario.areas is not None]
        studies.sort(key=lambda study: study.areas.is_read)
        return {study.areas.sha256: study.areas for study in studies}

    def with_current(self, scenario: Scenario) -> "Project":
        """A copy in which this takes the open one's place."""
        return self.with_scenario(self.open_index, scenario)

    def with_scenario(self, index: int, scenario: Scenario) -> "Project":
        """A copy in which this scenario takes that one's place."""
        before, after = self.scenarios[:index], self.scenarios[index + 1 :]
        return replace(self, scenarios=(*before, scenario, *after))

    def with_survey(self, name: str) -> "Project":
        """A copy in which the open scenario's survey, also that of others, has this name.

        Without a name before, the same codebook tells which others are of this survey.
        """
        survey, domain = self.current.survey, self.current.domain
        scenarios = (
            scenario.replaced(survey=name)
            if scenario.survey == survey and (survey or scenario.domain == domain)
            else scenario
            for scenario in self.scenarios
        )
        return replace(self, scenarios=tuple(scenarios))

    def opened(self, index: int) -> "Project":
        """A copy in which another scenario is the open one."""
        return replace(self, open_index=index)

    def added(self, scenario: Scenario) -> "Project":
        """A copy with a further scenario right after the open one, and open; renamed if need be."""
        scenario = scenario.replaced(name=self.free_name(scenario.name))
        scenarios, keys, index = list(self.scenarios), list(self.keys), self.open_index + 1
        scenarios.insert(index, scenario)
        keys.insert(index, max(keys) + 1)
        return Project(tuple(scenarios), index, tuple(keys))

    def removed(self, index: int) -> "Project":
        """A copy without one scenario; refuses to remove the last one."""
        if len(self.scenarios) == 1:
            raise WorkloadError("This is the only scenario; a project needs one.")
        order = [old for old in range(len(self.scenarios)) if old != index]
        open_index = self.open_index - 1 if index < self.open_index else self.open_index
        return self._in_order(order, min(open_index, len(order) - 1))

    def moved(self, index: int, by: int) -> "Project":
        """A copy in which a scenario is further down by so many (up if negative)."""
        order = list(range(len(self.scenarios)))
        order.insert(min(max(index + by, 0), len(order) - 1), order.pop(index))
        return self._in_order(order, order.index(self.open_index))

    def _in_order(self, order: list[int], open_index: int) -> "Project":
        """A copy with the scenarios of these indices."""
        scenarios = tuple(self.scenarios[index] for index in order)
        return Project(scenarios, open_index, tuple(self.keys[index] for index in order))

    def free_name(self, wanted: str) -> str:
        """The wanted name, or, where it is taken, the first of "wanted (2)", "wanted (3)", …"""
        if wanted not in self.names:
            return wanted
        candidates = (f"{wanted[: NAME_LENGTH - 6]} ({n})" for n in range(2, MOST_SCENARIOS + 2))
        return next(name for name in candidates if name not in self.names)

    # ---- files

    def text(self) -> str:
        """The project as JSON text; `parse` undoes it exactly."""
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "open": self.open_index,
            "scenarios": [scenario.to_json() for scenario in self.scenarios],
        }
        return sealed_text(content)

    @classmethod
    def parse(cls, text: str, read_tree: ReadTreeFile = no_tree_file) -> "Project":
        """The project that a text holds; raises `WorkloadError` if it is not a usable one.

        A text of a single scenario is a project of that one.

        read_tree: reads a file of areas, when they are needed
        """
        with refusing(WorkloadError, "This is not a usable project"):
            content: Any = loads(text)
            sealed = isinstance(content, dict) and SEAL in content
            if sealed and content[SEAL] != seal_of(content):
                raise WorkloadError(
                    f"it is damaged, or was changed since it was saved (its {SEAL} is not that of "
                    f"the rest); open an older copy, or take {SEAL!r} out if it was changed on "
                    "purpose."
                )
            if isinstance(content, dict) and content.get("format") != FORMAT:
                return cls((Scenario.from_json(content, read_tree),))._noting(content)
            read, content = content, of_version_2(content)
            check_format(content, FORMAT, FORMAT_VERSION, "project")
            check_keys(content, {*_KEYS, *({SEAL} & content.keys())}, "a project")
            # One more than there may be is enough to be refused.
            listed = list_of(content, "scenarios")[: MOST_SCENARIOS + 1]
            scenarios = tuple(Scenario.from_json(one, read_tree) for one in listed)
            return cls(scenarios, content["open"])._noting(read)

    def _noting(self, content: Any) -> "Project":
        """This project, as read from a content, with `splits_anew`."""
        several = any(len(scenario.kinds) > 1 for scenario in self.scenarios)
        is_old = of_version_2(content) is not content
        return replace(self, splits_anew=True) if is_old and several else self


# ---- The file of a project: JSON, or with areas a zip file of it and of these.
#
# project.json            as `Project.text`
# areas-SHA256.parquet    the areas of some of its scenarios (`domain.area_tree_file`)


MOST_BYTES = 200_000_000  # of an uploaded project
_MOST_UNPACKED = 1_000_000_000  # bytes
_TEXT = "project.json"


def name_of_areas(sha256: str) -> str:
    """What the file of the areas with this SHA-256 is called, beside or within projects."""
    return f"areas-{sha256}.parquet"


def filename_of(project: Project) -> str:
    """What to call the file of a project."""
    return "project.zip" if project.areas else _TEXT


def content_of(project: Project) -> bytes:
    """The file of a project. Areas whose file is missing stay away, and are asked for again."""
    text = project.text().encode()
    if not project.areas:
        return text
    files = {_TEXT: text}
    for sha256, areas in project.areas.items():
        with suppress(DomainError):
            files[name_of_areas(sha256)] = parquet_of_tree(areas.tree)
    return zip_of(files)


def project_of_file(
    content: bytes, filename: str, read_tree: ReadTreeFile = no_tree_file
) -> Project:
    """The project in an uploaded file, with all areas that are in it read.

    Args:
        read_tree: For areas that are not in it.

    Raises:
        WorkloadError: If there is no usable project in it.
    """
    if len(content) > MOST_BYTES:
        raise WorkloadError(
            f"{filename} is too large for a project: {data_size(len(content))}, at most "
            f"{data_size(MOST_BYTES)}."
        )
    files = _unpacked(content, filename) if content.startswith(ZIP) else {_TEXT: content}
    if _TEXT not in files:
        raise WorkloadError(f"{filename} holds no {_TEXT}; choose a project that this app saved.")
    text = utf8_text(files[_TEXT], filename, WorkloadError)

    def read(sha256: str) -> bytes | None:
        name = name_of_areas(sha256)
        return files[name] if name in files else read_tree(sha256)

    held = isinstance(read_tree, HeldTreeFiles)
    project = Project.parse(text, HeldTreeFiles(read, read_tree.holder) if held else read)
    for sha256, areas in project.areas.items():
        if name_of_areas(sha256) in files:
            try:
                _ = areas.tree
            except RpexploreError as error:
                raise WorkloadError(f"{filename} holds damaged areas. {error}") from None
    return project


def _unpacked(content: bytes, filename: str) -> dict[str, bytes]:
    """The files in a zip file that belong to a project."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [
                entry
                for entry in archive.infolist()
                if entry.filename == _TEXT or entry.filename.startswith("areas-")
            ]
            unpacked = sum(entry.file_size for entry in entries)
            if unpacked > _MOST_UNPACKED:
                raise WorkloadError(
                    f"{filename} is too large for a project: {data_size(unpacked)} unpacked, at "
                    f"most {data_size(_MOST_UNPACKED)}."
                )
            return {entry.filename: archive.read(entry) for entry in entries}
    except DAMAGED:
        raise WorkloadError(f"{filename} is no zip file, or a damaged one.") from None


# ---- What a scenario may ask of a shared server.


_FEWER_TABLES = "ask for tables of fewer attributes, or for fewer of them"
_ASKED = {  # what is counted, and what to do where it is too much, by the names of the limits
    "attributes": ("attributes in the codebook", "leave some out"),
    "categories": (
        "categories of all attributes together",
        "group the values of the largest attributes",
    ),
    "areas": ("areas", "leave out the lowest level"),
    "tables": ("tables", _FEWER_TABLES),
    "cells": ("cells of all tables together", _FEWER_TABLES),
}


def check_limits(scenario: Scenario, limits: Limits) -> None:
    """Raise `LimitError` for a scenario that is too large for a server with these limits.

    Tables that cannot be listed are refused where they are planned.
    """
    domain = scenario.domain
    counts = {"attributes": len(domain), "categories": int(domain.sizes.sum())}
    if scenario.areas is not None:
        counts["areas"] = scenario.areas.areas.n_areas
    _check(counts, limits)  # before the tables of a huge codebook are listed
    if len(domain):
        try:
            workload = scenario.workload
        except WorkloadError:
            return
        _check({"tables": len(workload), "cells": int(workload.cells.sum())}, limits)


def _check(counts: dict[str, int], limits: Limits) -> None:
    for limit, count in counts.items():
        most = getattr(limits, limit)
        what, remedy = _ASKED[limit]
        if count > most:
            raise LimitError(
                f"There would be {describe_count(count)} {what}, and this server plans for at most "
                f"{describe_count(most)}; {remedy}, or plan with your own app (rpexplore app).",
                limit=limit,
            )
