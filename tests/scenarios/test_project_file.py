"""Project files: areas travel with a project, as one file a tree, and are read when needed."""

import io
import os
import time
import zipfile
from dataclasses import replace

import pytest

import rpexplore as rp
from rpexplore.domain import area_tree_file
from rpexplore.domain.area_tree_file import AreaTreeReference, parquet_of_tree
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.project import Project, content_of, filename_of, project_of_file
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.targets import Target

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2})
LEVEL = {"name": "all", "areas": 1, "workload": 0}
PATHS = {"region": [*"NNS"], "town": [*"121"]}


def study(names=None) -> AreaStudy:
    """Of a tree of its own: nothing else has it in memory."""
    tree = rp.AreaTree.from_columns(PATHS, names)
    return AreaStudy.of("areas.json", rp.AreaCodebook("home", tree, DOMAIN))


def project_of(*studies: AreaStudy | None) -> Project:
    return Project(
        tuple(Scenario(DOMAIN, name=f"s{n}", areas=areas) for n, areas in enumerate(studies))
    )


def varied(begun: AreaStudy) -> AreaStudy:
    """With everything that can be changed."""
    changed = begun.with_preset("Less detail on lower levels").with_weights(
        {("region", ("age",)): 2.5, ("all", ()): None}
    )
    changed = changed.with_targets({("town", ("sex",)): Target(3.0, required=True)})
    expected = rp.ExpectedCounts.of_total(90)
    return replace(changed, loss=SumWithinTargets(), uniform=True, expected=expected)


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(autouse=True)
def _nothing_in_memory():
    area_tree_file._in_memory.clear()


def test_a_file_is_json_and_with_areas_a_zip_that_holds_each_tree_once():
    plain = project_of(None)
    assert filename_of(plain) == "project.json"
    assert content_of(plain) == plain.text().encode()
    begun = study()
    project = project_of(begun, varied(begun), None, study({"town": ["A", "B", "C"]}))
    assert filename_of(project) == "project.zip"
    text, *trees = members(content_of(project))
    assert (text, len(trees)) == ("project.json", 2)  # names are a part of what a tree is

    area_tree_file._in_memory.clear()
    opened = project_of_file(content_of(project), "project.zip")
    assert opened == project
    first, second, none, named = (scenario.areas for scenario in opened.scenarios)
    assert none is None
    assert first.areas.tree is second.areas.tree
    assert named.areas.tree.names.to_pylist()[-3:] == ["A", "B", "C"]
    for field in ("loss", "uniform", "levels", "expected"):
        assert getattr(second, field) == getattr(varied(begun), field)
    assert second.tables["region"].weights.tolist() == [1, 2.5, 1, 1]
    assert second.tables["town"].targets.tolist()[-1] == 3
    assert second.tables["town"].required.tolist()[-1]
    plans = [
        plan_areas(one.workload, loss=one.loss, budget=rp.Budget(rho=1), uniform_levels=True).text
        for one in (second, varied(begun))
    ]
    assert plans[0] == plans[1]


def test_what_is_changed_without_the_tree_does_not_read_it():
    read = []
    text = project_of(study()).text()
    area_tree_file._in_memory.clear()
    areas = Project.parse(text, read.append).current.areas
    changed = areas.with_weights({("town", ()): 3})
    assert (changed.n_tables, changed.rows[0], changed != areas) == (6 * 4, (), True)
    assert areas.with_weights({("town", ()): 1}) is areas
    assert project_of(changed).text().count('"areas": 3') == 1
    assert not read
    with pytest.raises(DomainError, match="these 6 areas is not on this computer; give it again"):
        _ = changed.workload
    assert read == [areas.areas.sha256]


def packed(**files: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def test_a_file_that_is_damaged_or_too_large_is_refused(monkeypatch):
    begun = study()
    other = parquet_of_tree(rp.AreaTree.from_columns(PATHS | {"town": [*"134"]}))
    content = content_of(project_of(begun))
    text, name = members(content)["project.json"], f"areas-{begun.areas.sha256}.parquet"
    area_tree_file._in_memory.clear()
    for wrong, error in (
        (content[:-40], "no zip file, or a damaged one"),
        (content[:200] + b"xxxx" + content[204:], "no zip file, or a damaged one"),
        (packed(**{"a.json": b""}), r"holds no project\.json"),
        (packed(**{"project.json": text, name: other}), "areas was changed since it was saved"),
        (packed(**{"project.json": text, name: b"no"}), "no Parquet file"),
    ):
        with pytest.raises(WorkloadError, match=error):
            project_of_file(wrong, "p.zip")
    # The text alone opens; its areas are asked for when they are needed.
    assert project_of_file(text, "project.json") == project_of(begun)
    monkeypatch.setattr("rpexplore.scenarios.project._MOST_UNPACKED", 10)
    with pytest.raises(WorkloadError, match=r"p\.zip is too large for a project: .* unpacked"):
        project_of_file(content, "p.zip")
    monkeypatch.setattr("rpexplore.scenarios.project.MOST_BYTES", 10)
    with pytest.raises(WorkloadError, match=r"big\.json is too large for a project"):
        project_of_file(b" " * 11, "big.json")


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("sha256", "../x", "must be 64 hexadecimal digits"),
        ("uniform_levels", 1, "uniform_levels must be true or false"),
        (
            "levels",
            [{"name": "all", "areas": 1, "workload": 0}] * 2,
            "each level must have a name of its own, and some level tables",
        ),
        ("workloads", [], "there is no workload"),
        (
            "loss",
            {"kind": "p_norm", "p": 4, "relative_to": "weight"},
            "the loss of a plan for areas must be",
        ),
        ("codebook", 3, "codebook must be a text"),
    ],
)
def test_areas_that_are_not_usable_are_refused(key, value, error):
    content = project_of(study()).current.to_json()
    content["areas"][key] = value
    with pytest.raises(WorkloadError, match=error):
        Scenario.from_json(content)


def test_autosaved_areas_are_one_file_that_goes_when_no_project_has_them(tmp_path):
    autosaves, key = Autosaves(tmp_path / "autosaves"), Autosaves.new_key()
    begun = study()
    project = project_of(begun, varied(begun))
    autosaves.save_areas(project)
    autosaves.save(key, project.text(), None)
    (tree,) = autosaves.folder.glob("*.parquet")
    assert tree.stat().st_mode & 0o777 == 0o600
    area_tree_file._in_memory.clear()
    opened = autosaves.read(key)
    assert opened is not None
    assert opened.project == project
    assert not opened.project.current.areas.areas.is_read
    assert opened.project.current.areas.areas.tree.codes.to_pylist()[-3:] == ["1", "2", "1"]

    long_ago = time.time() - 2 * 24 * 3600
    os.utime(tree, (long_ago, long_ago))
    autosaves.remove_unused_areas()
    assert tree.exists()
    autosaves.save(key, project_of(None).text(), project.text())
    autosaves.remove_unused_areas()
    assert tree.exists()  # for Undo
    os.utime(tree, (long_ago, long_ago))
    autosaves.save_areas(project)
    autosaves.remove_unused_areas()
    assert tree.exists()  # wanted again, and the project is about to be saved
    os.utime(tree, (long_ago, long_ago))
    autosaves.remove_unused_areas()
    assert not tree.exists()


def test_autosaved_areas_that_are_damaged_are_said_to_be_and_mended(tmp_path):
    autosaves, areas = Autosaves(tmp_path), study().areas
    tree = areas.tree
    autosaves.save_tree(tree)
    (path,) = tmp_path.glob("*.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[:-30] + b"x" * 30)
    area_tree_file._in_memory.clear()
    reference = AreaTreeReference(tree.sha256, tree.levels, areas.sizes, autosaves.read_tree)
    error = "The file of these areas cannot be used: it is no Parquet file, or a damaged one; give"
    with pytest.raises(DomainError, match=error):
        _ = reference.tree
    autosaves.save_tree(tree)
    assert path.read_bytes() == whole
    assert reference.tree.sha256 == tree.sha256
