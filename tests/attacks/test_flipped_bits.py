"""Files with one bit changed, or cut off: refused, or read as what they were."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.common.json_fields import sealed_text
from rpexplore.domain import area_tree_file
from rpexplore.errors import LedgerError, PlanError, RpexploreError, WorkloadError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.combination import combine, load_combined, write_combined
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.synthetic.records import SyntheticRecords
from rpexplore.results.synthetic.records_folder import synthesize
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.project import Project, content_of, project_of_file
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.query_list import QueryList
from tests.attacks.malformed import edited, flipped
from tests.releases.parts_plan import plan_of, records
from tests.support.query_lists import query_plan

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
FLIPS = 1500 if NIGHTLY else 100
DOMAIN = rp.Domain.from_sizes({"a": 2, "b": 3})
TABLES = rp.Workload.all_up_to(DOMAIN, 1)
PLAN = plan_tables(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))
QUERIES = QueryList(DOMAIN, [[1, 1, 1, 0, 0, 0]], ("first",), [1.0])
LOADED: dict[str, Callable[[Path], object]] = {
    "release": TableRelease.load,
    "queries": QueryRelease.load,
    "combined": load_combined,
    "combined parts": load_combined,
    "processed": ProcessedTables.load,
    "synthetic": SyntheticRecords.load,
    "smooth": ProcessedTables.load,
}


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "records.csv"
    path.write_text("a\n0\n1\n")
    return path


def test_of_a_ledger(data, tmp_path):
    domain = rp.Domain.from_sizes({"a": 2})
    plan = plan_tables(
        rp.Workload.all_up_to(domain, 1), loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2")
    )
    good = Ledger.beside(data)
    good.set_limit(data, Fraction(7))
    for _ in range(12):
        good.finish(good.book(data, plan, tmp_path / "out"))
    account, content = good.account(data), good.path.read_bytes()
    refused = 0
    for changed in flipped(content, random.Random(4), FLIPS):
        good.path.write_bytes(changed)
        try:
            assert good.account(data) == account
        except LedgerError:
            refused += 1
        for left in data.parent.glob("*-journal"):
            left.unlink()
    assert refused > FLIPS // 4
    shutil.rmtree(data.parent)


@pytest.mark.parametrize("plan", [PLAN, query_plan(QUERIES, budget=rp.Budget(rho="1/2"))])
def test_of_a_plan(plan):
    content = plan.text.encode()
    for changed in flipped(content, random.Random(5), FLIPS):
        if changed != content:
            text = changed.decode(errors="replace")
            for canonical in (True, False):
                try:
                    read = type(plan).parse(text, canonical=canonical)
                except PlanError:
                    continue
                assert not canonical
                assert read.text == plan.text


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    """A folder of every kind."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "records.csv").write_text("a,b\n0,0\n1,2\n")
    released = rp.release(PLAN, folder / "records.csv", folder / "release")
    tables = released.part("tables")
    queries = query_plan(QUERIES, budget=rp.Budget(rho="1/2"))
    rp.release(queries, folder / "records.csv", folder / "queries")
    write_combined(combine(tables), folder / "combined")
    runs = [
        rp.release(
            plan_of(("areas", "counts")),
            records(20),
            folder / name,
            name="records",
            ledger=folder / "ledger.sqlite",
        )
        for name in ("first", "second")
    ]
    write_combined(combine(*runs), folder / "combined parts")
    postprocess(tables, folder / "processed", method="nonnegative")
    synthesize(tables, folder / "synthetic", rows=20, never=[{"a": "0", "b": "0"}])
    postprocess(tables, folder / "smooth", method="smooth", rounded=True)
    return folder


@pytest.mark.by_day(4)
@pytest.mark.parametrize("kind", LOADED)
def test_of_every_file_of_a_folder(kind, folders):
    """The largest file as often as the smallest."""
    chooser = random.Random(kind)
    files = sorted(path for path in (folders / kind).rglob("*") if path.is_file())
    for number in range(FLIPS):
        path = folders / kind / "manifest.json" if number % 2 else chooser.choice(files)
        content = path.read_bytes()
        (changed,) = flipped(content, chooser, 1)
        path.write_bytes(changed)
        try:
            if changed != content:
                with pytest.raises(RpexploreError, match=r"^[^\n]+$"):
                    LOADED[kind](folders / kind)
        finally:
            path.write_bytes(content)
    LOADED[kind](folders / kind)


@pytest.mark.by_day(4)
@pytest.mark.parametrize("kind", LOADED)
def test_of_a_manifest_that_was_edited_and_sealed_anew(kind, folders, tmp_path):
    """What nobody can check may say otherwise: times, versions, names, words for people."""
    copy, chooser = shutil.copytree(folders / kind, tmp_path / kind), random.Random(kind)
    content = json.loads((copy / "manifest.json").read_text())
    unproven = {"versions", "finished", "created", "run", "records_per_person", "sources", "gap"}
    unproven |= {"rounds", "sha256"}
    unproven |= {"guarantee", "label", "noise", "postprocessing", "privacy_unit"}
    for changed in edited(content, chooser, FLIPS // 2):
        text = sealed_text(changed) if isinstance(changed, dict) else json.dumps(changed)
        (copy / "manifest.json").write_bytes(text.encode(errors="replace"))
        try:
            LOADED[kind](copy)
        except RpexploreError as error:
            assert re.fullmatch(r"[^\n]{1,1200}", str(error))  # noqa: PT017 (others are accepted)
        else:
            proven = content.keys() - unproven
            assert {key: changed[key] for key in proven} == {key: content[key] for key in proven}


def test_of_a_saved_project(tmp_path):
    """Whatever is not refused differs in spaces alone."""
    scenario = Scenario(DOMAIN, name="first", note="what for")
    good, saved, key = Project((scenario,)), Autosaves(tmp_path), Autosaves.new_key()
    assert saved.save(key, good.text(), None)
    content, refused = saved.path(key).read_bytes(), 0
    for changed in flipped(content, random.Random(6), FLIPS):
        saved.path(key).write_bytes(changed)
        try:
            read = saved.read(key)
            assert read is not None
            assert read.project.text() == good.text()
        except WorkloadError:
            refused += 1
    assert refused > FLIPS // 2


def test_of_a_project_with_areas():
    tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
    study = AreaStudy.of("home.json", rp.AreaCodebook("home", tree, DOMAIN))
    good = Project((Scenario(DOMAIN, areas=study),))
    content, codes, refused = content_of(good), tree.codes.to_pylist(), 0
    for changed in flipped(content, random.Random(7), FLIPS):
        area_tree_file._in_memory.clear()
        try:
            read = project_of_file(changed, "project.zip")
        except WorkloadError:
            refused += 1
            continue
        assert read == good
        areas = read.current.areas
        if areas.areas.is_read:
            assert areas.areas.tree.codes.to_pylist() == codes
    assert refused > FLIPS // 2
