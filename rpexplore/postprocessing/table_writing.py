"""A new folder of tables: complete or not at all."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rpexplore.common.concurrency import Progress, in_order
from rpexplore.common.formatting import describe_share, rounded
from rpexplore.common.template_text import text_from_template
from rpexplore.errors import ReleaseError
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.releases.atomic_folder import new_folder
from rpexplore.releases.csv_cells import csv_decimals
from rpexplore.releases.manifest import file_entry
from rpexplore.releases.table_files import write_table


@contextmanager
def new_tables_folder(output: Path) -> Iterator[Path]:
    """A `new_folder` with a folder for tables; `ReleaseError` for what the system refuses."""
    try:
        with new_folder(output) as folder:
            (folder / "tables").mkdir()
            yield folder
    except OSError as error:
        raise ReleaseError(
            f"The tables could not be written to {str(output)!r} ({error.strerror or error}) and "
            "nothing of them was left; make room, or choose another folder."
        ) from None


def write_tables(
    folder: Path,
    tables: Sequence[Sequence[str]],
    cells: Callable[[int], pa.Table],
    on_progress: Progress,
    *,
    escape_formulas: bool,
) -> list[dict[str, Any]]:
    """Write tables on all processors; what the manifest says of their files.

    tables: the attributes of each. cells: of the table at a position, one row a cell; called in
    threads.
    """

    def write(position: int) -> list[dict[str, Any]]:
        rows = cells(position)
        errors = np.asarray(rows["standard_error"])
        return write_table(
            folder,
            position,
            tables[position],
            iter([rows]),
            decimals=csv_decimals(errors.min(), np.abs(rows["upper_95"]).max()),
            escape_formulas=escape_formulas,
        )

    files = []
    with closing(in_order(write, range(len(tables)))) as written:
        for position, entries in enumerate(written):
            files += entries
            if position % 16 == 0:
                on_progress("Writing the tables", position / len(tables))
    return files


def write_readme(
    folder: Path, template: str, estimates: Estimates, label: str, **facts: Any
) -> dict[str, Any]:
    """Write README.md; what the manifest says of it."""
    text = text_from_template(
        "rpexplore.postprocessing",
        template,
        label=label,
        guarantee=estimates.guarantee,
        sources=estimates.sources,
        all_released=all(source.is_release for source in estimates.sources),
        rounded=rounded,
        describe_share=describe_share,
        **facts,
    )
    (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")
    return file_entry(folder, "README.md")
