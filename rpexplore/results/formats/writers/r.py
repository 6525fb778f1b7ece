"""A reader for R without packages: rpexplore.R, which opens releases as well as exports."""

from importlib.resources import files
from pathlib import Path

from rpexplore.results.formats.export import Export, Format
from rpexplore.results.formats.writers.frictionless import write_frictionless

FILE = "rpexplore.R"


def write_r_script(export: Export, folder: Path) -> None:
    """Write the reader, and the description of the tables that it goes by."""
    (folder / FILE).write_bytes((files("rpexplore.results.formats.writers") / FILE).read_bytes())
    write_frictionless(export, folder)


FORMAT = Format(
    "R",
    "`rpexplore.R`, without packages, reads the folder that `datapackage.json` describes",
    write_r_script,
)
