"""The file of a project: JSON, or with areas a zip file of it and of these.

project.json            as `Project.text`
areas-SHA256.parquet    the areas of some of its scenarios (`domain.area_tree_file`)
"""

import io
import zipfile
from contextlib import suppress

from rpexplore.common.files import utf8_text
from rpexplore.common.formatting import data_size
from rpexplore.common.zip_file import DAMAGED, ZIP, zip_of
from rpexplore.domain.area_tree_file import parquet_of_tree
from rpexplore.domain.area_tree_reference import HeldTreeFiles, ReadTreeFile, no_tree_file
from rpexplore.errors import DomainError, RpexploreError, WorkloadError
from rpexplore.scenarios.project import Project

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
