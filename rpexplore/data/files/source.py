"""The source of records that a path, or a source itself, stands for."""

from pathlib import Path

from rpexplore.data.files.file_source import FileSource
from rpexplore.data.source import Source

AnySource = str | Path | Source


def source_of(data: AnySource) -> Source:
    """A source as it is; a path as the file or folder there."""
    return FileSource(data) if isinstance(data, (str, Path)) else data
