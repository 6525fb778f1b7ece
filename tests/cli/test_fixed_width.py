"""A codebook and records like those of IPUMS, from file to two-way tables by two commands."""

import hashlib
import json
from itertools import combinations

import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.main import cli
from tests.support.ipums import VARIABLES, by_pandas, ddi, records

LISTED = {name: labels for name, *_, labels in VARIABLES if labels}


def run(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.nightly
def test_every_cell_of_all_two_way_tables_is_as_by_pandas(tmp_path):
    codebook, data = tmp_path / "usa.xml", tmp_path / "usa.dat"
    codebook.write_text(ddi())
    data.write_text(records(5_000))
    plan, out = tmp_path / "plan.json", tmp_path / "out"
    run("plan", codebook, "--up-to", 2, "--rho", 10**6, "--out", plan)
    run("release", plan, data, "--positions", codebook, "--out", out, "--yes")
    done = rp.Release.load(out)
    digest = hashlib.sha256(codebook.read_bytes()).hexdigest()
    assert done.manifest["positions"] == {"file": "usa.xml", "sha256": digest}
    assert f"usa.xml (SHA-256 {digest})" in " ".join((out / "README.md").read_text().split())
    frame = by_pandas(data)
    n_cells = 0
    for first, second in combinations(LISTED, 2):
        frame["a"], frame["b"] = frame[first].map(LISTED[first]), frame[second].map(LISTED[second])
        counted = frame.groupby(["a", "b"]).size()
        table = done.table(first, second)
        heads = [f"{name} label" if f"{name} label" in table else name for name in (first, second)]
        own = table.set_index(heads)["value"]
        own.index = own.index.map(lambda labels: tuple(map(str, labels)))
        assert set(counted.index) <= set(own.index)
        wanted = counted.reindex(own.index, fill_value=0)
        assert ((own - wanted).abs() < 0.5).all(), (first, second)
        assert counted.sum() == wanted.sum() == 5_000
        n_cells += len(own)
    assert n_cells == 2 * 3 + 2 * 3 + 2 * 91 + 2 * 3 + 3 * 3 + 3 * 91 + 3 * 3 + 3 * 91 + 9 + 91 * 3


def test_schema_says_where_the_columns_are(tmp_path):
    codebook = tmp_path / "usa.xml"
    codebook.write_text(ddi())
    facts = json.loads(run("schema", codebook, "--json"))
    assert [fact["positions"] for fact in facts["attributes"]][:3] == ["1–4", "23–24", "25"]
    text = run("schema", codebook)
    assert "39 characters a line" in text
    assert "SERIAL 5–12, PERWT 13–22 (2 decimals), INCWAGE 33–39" in text
    codebook.write_text(ddi("hierarchical"))
    assert "do not all have the same columns" in run("schema", codebook)
