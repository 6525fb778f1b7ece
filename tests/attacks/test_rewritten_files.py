"""Files of a folder of results that are exchanged after it was opened: read by nobody."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases import packed_tables
from rpexplore.releases.finished_release import Release
from rpexplore.results.combination import combine, load_combined, write_combined
from rpexplore.results.estimates.area_counts import AreaCounts, area_guesses, whole_area_counts
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.results import load_area_results
from rpexplore.results.synthetic.area_records import AreaRecords, synthesize_areas
from rpexplore.results.synthetic.records import SyntheticRecords
from rpexplore.results.synthetic.records_folder import synthesize
from tests.releases.parts_plan import TREE, plan_of, records

DOMAIN = rp.Domain.from_sizes({"a": 2, "b": 3})
PLAN = plan_tables(
    rp.Workload.all_up_to(DOMAIN, 2), loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2")
)
# Folder -> what opens it, and each way to read figures of it.
READ: dict[str, tuple[Callable[[Path], Any], list[Callable[[Any], Any]]]] = {
    "release": (
        Release.load,
        [
            lambda done: done.part("tables").table("sex"),
            lambda done: done.part("tables").answer("sex", where={"sex": "f"}),
            lambda done: done.part("areas").table("town", "sex"),
            lambda done: done.part("areas").items[0].read(),
            lambda done: done.part("areas").answers_in_areas.numbers(0, 0),
            lambda done: done.part("counts").answers,
            lambda done: done.part("counts").measurements,
            lambda done: done.part("rounds").items[0].read(),
            lambda done: done.part("rounds").bounds,
            lambda done: done.part("rounds").outcomes,
            lambda done: done.part("rounds").measured,
        ],
    ),
    "packed": (
        Release.load,
        [lambda done: done.table("a"), lambda done: done.part("tables").items[2].read()],
    ),
    "combined": (
        load_combined,
        [
            lambda done: done.part("areas").table("town", "sex"),
            lambda done: done.part("areas").answers_in_areas.numbers(0, 0),
            lambda done: done.part("counts").answers,
        ],
    ),
    "nonnegative": (ProcessedTables.load, [lambda done: done.table("a")]),
    "smooth": (
        ProcessedTables.load,
        [
            lambda done: done.table("a"),
            lambda done: done.shrinkage,
            lambda done: done.shrinkage_by_group,
        ],
    ),
    "synthetic": (
        SyntheticRecords.load,
        [
            lambda done: done.records(),
            lambda done: done.records(5),
            lambda done: done.comparison,
            lambda done: done.worst_cells,
        ],
    ),
    "whole": (load_area_results, [lambda done: done.items[0].read()]),
    "guesses": (
        AreaCounts.load,
        [lambda done: done.table("town", "sex"), lambda done: done.cells(TREE.levels)],
    ),
    "area records": (
        AreaRecords.load,
        [lambda done: done.records(), lambda done: done.of_file(done.files[0])],
    ),
}


@pytest.fixture(scope="module", autouse=True)
def packed_files():
    """Small tables in one file, as of a hundred."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_tables, "MOST_FILES", 2)
        yield


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    """A folder of every kind."""
    folder = tmp_path_factory.mktemp("good")
    whole = rp.release(
        plan_of(), records(), folder / "release", name="rewritten", ledger=folder / "ledger.sqlite"
    )
    few = [
        rp.release(
            *(plan_of(("areas", "counts")), records(20), folder / name),
            name="rewritten, few",
            ledger=folder / "other.sqlite",
        )
        for name in ("few", "again")
    ]
    write_combined(combine(*few), folder / "combined")
    (folder / "records.csv").write_text("a,b\n0,0\n1,2\n")
    packed = rp.release(PLAN, folder / "records.csv", folder / "packed").part("tables")
    postprocess(packed, folder / "nonnegative", method="nonnegative")
    postprocess(packed, folder / "smooth", method="smooth")
    synthesize(packed, folder / "synthetic", rows=20)
    areas = whole.part("areas")
    whole_area_counts(areas, folder / "whole")
    area_guesses(areas, folder / "guesses")
    synthesize_areas(load_area_results(folder / "guesses"), folder / "area records")
    return folder


def _rewrite(folder: Path) -> None:
    """Every Parquet file with other figures of the same types, as somebody may write them."""
    for path in folder.rglob("*.parquet"):
        table = pq.read_table(path)
        for place, name in enumerate(table.column_names):
            column = table[name]
            if pa.types.is_floating(column.type) or column.type == pa.int64():
                higher = pa.array(column.to_numpy() + 1000, column.type)
                table = table.set_column(place, table.field(name), higher)
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), "by": "somebody"})
        path.unlink()
        pq.write_table(table, path)


@pytest.mark.parametrize("kind", READ)
def test_a_file_that_was_rewritten_after_opening(kind, folders, tmp_path):
    for name in ("release", "guesses", "packed", kind):
        shutil.copytree(folders / name, tmp_path / name, dirs_exist_ok=True)
    load, ways = READ[kind]
    for way in ways:
        way(load(tmp_path / kind))
    opened = load(tmp_path / kind)
    _rewrite(tmp_path / kind)
    for way in ways:
        with pytest.raises(ReleaseError, match=r"was changed since; restore it"):
            way(opened)
