"""Records of fixed width that are cut, shifted or padded: none is counted at a wrong position.

A line that does not fit would give the values of one column to another. It is refused, with
nothing of what it holds, and nothing is charged or written.
"""

import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from rpexplore.cli.main import cli
from rpexplore.data.files import fixed_batches
from rpexplore.domain.record_layout import Place, RecordLayout, layout_of_ddi
from rpexplore.errors import DataError, DomainError
from rpexplore.releases.ledger.ledger import Ledger
from tests.support.ipums import ddi, records

ROWS = 40
RELEASE = ("release", "plan.json", "usa.dat", "--yes")


def run(*arguments: str):
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("usa.xml").write_text(ddi())
    plan = ("plan", "usa.xml", "--table", "SEX,STATEFIP", "--rho", "1", "--out", "plan.json")
    assert run(*plan).exit_code == 0
    return tmp_path


def release(out: str = "out"):
    return run(*RELEASE, "--positions", "usa.xml", "--out", out)


def test_a_sign_more_or_less_in_any_line_is_refused_and_nothing_of_it_told(folder):
    chooser, lines = random.Random(1), records(ROWS).splitlines()
    changes = {
        "shorter": lambda line, at: line[:at] + line[at + 1 :],
        "longer": lambda line, at: f"{line[:at]}7{line[at:]}",
        "tab": lambda line, at: f"{line[:at]}\t{line[at + 1 :]}",
        "two bytes": lambda line, at: f"{line[:at]}é{line[at + 2 :]}",
        "two lines": lambda line, at: f"{line[:at]}\n{line[at + 1 :]}",
        "no line": lambda line, at: "",
    }
    for name, change in changes.items():
        for number in (0, chooser.randrange(1, ROWS - 1), ROWS - 1):
            at = chooser.randrange(len(lines[number]) - 2)
            changed = [*lines]
            changed[number] = change(lines[number], at)
            Path("usa.dat").write_text("\n".join(changed) + "\n", "utf-8")
            result = release()
            assert result.exit_code == 2, (name, number)
            assert f"line {number + 1}" in result.stderr, (name, result.stderr)
            # No longer piece of any record is told.
            told = re.findall(r"\d{5,}", result.output)
            assert not any(piece in line for piece in told for line in lines), name
            assert not Path("out").exists()
    assert not Ledger("rpexplore-ledger.sqlite").account("usa.dat").entries


def test_a_line_shifted_within_its_width_is_refused_by_its_values(folder):
    lines = records(ROWS).splitlines()
    lines[3] = f" {lines[3][:-1]}"  # its state is blank and a digit of its weight
    Path("usa.dat").write_text("\n".join(lines) + "\n")
    result = release()
    assert result.exit_code == 2
    assert "not in the codebook" in result.stderr
    assert not Path("out").exists()


def test_releases_that_read_columns_elsewhere_or_other_texts_are_not_combined(folder):
    Path("usa.dat").write_text(records(ROWS))
    assert release("one").exit_code == 0
    Path("usa.xml").write_text(f"{Path('usa.xml').read_text()}\n")  # another file of positions
    assert release("two").exit_code == 0
    release_in = [*RELEASE, "--positions", "usa.xml", "--encoding"]
    assert run(*release_in, "windows-1252", "--out", "three").exit_code == 0
    assert run(*release_in, "UTF-8", "--out", "four").exit_code == 0
    refused = run("combine", "one", "two", "--out", "both")
    assert refused.exit_code == 2
    assert "by files of positions that differ" in refused.stderr
    refused = run("combine", "two", "three", "--out", "both")
    assert "those of 'three' in cp1252" in refused.stderr
    assert run("combine", "two", "four", "--out", "both").exit_code == 0
    # What is combined knows how it was read.
    refused = run("combine", "both", "three", "--out", "all")
    assert "those of 'three' in cp1252" in refused.stderr
    assert "by files of positions" in run("combine", "one", "both", "--out", "all").stderr


def judged(content: bytes) -> list[tuple[str | None, str | None]] | None:
    """The columns of lines of a sign and two signs, as split here; None if a line does not fit."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    last = lines.pop()
    has_returns = {line.endswith(b"\r") for line in lines}
    lines = [line.removesuffix(b"\r") for line in lines] + [last] * bool(last)
    fit = all(len(line) == 3 and all(32 <= sign < 128 for sign in line) for line in lines)
    if not fit or len(has_returns) > 1:
        return None
    texts = ((line[:1].decode().strip(), line[1:].decode().strip()) for line in lines)
    return [(one or None, two or None) for one, two in texts]


def test_bytes_put_in_or_taken_out_anywhere_are_seen(tmp_path, monkeypatch):
    chooser, path = random.Random(5), tmp_path / "a.dat"
    layout = RecordLayout(("a", "b"), (Place(0, 1), Place(1, 3)), 3)
    put_in = [b"", b"\n", b"\r", b"a", b" ", b"\t", b"\xc3\xa9", b"\r\n", b"\xef\xbb\xbf"]
    n_read = 0
    for _ in range(200):
        monkeypatch.setattr(fixed_batches, "_BLOCK", chooser.choice([8, 12, 1 << 20]))
        end = chooser.choice([b"\n", b"\r\n"])
        lines = [bytes(chooser.choices(b"ab 1", k=3)) for _ in range(chooser.randrange(6))]
        content = end.join(lines) + chooser.choice([end, b""]) * bool(lines)
        for _ in range(chooser.choice([0, 1, 2])):
            at = chooser.randrange(len(content) + 1)
            behind = content[at + chooser.randrange(3) :]
            content = content[:at] + chooser.choice(put_in) + behind
        path.write_bytes(content)
        try:
            batches = list(fixed_batches.fixed_batches(path, "a", layout, ["a", "b"]))
            found = [(row["a"], row["b"]) for batch, _ in batches for row in batch.to_pylist()]
            n_read += 1
        except DataError:
            found = None
        assert found == judged(content), content
    assert 60 < n_read < 150


def test_codebooks_with_one_number_changed_are_refused_or_state_positions():
    chooser, text = random.Random(2), ddi()
    places = [match.span(1) for match in re.finditer(r'(?:Pos|width|dcml)="(\d+)"', text)]
    told: list[str] = []
    for _ in range(200):
        start, end = chooser.choice(places)
        odd = chooser.choice(["", "-1", "1e3", "٣", "9" * 5000, "0", "NaN", "1 2", "&#0;", "7"])
        try:
            layout = layout_of_ddi(f"{text[:start]}{odd}{text[end:]}".encode(), "usa.xml")
        except DomainError as error:
            told.append(str(error))
            continue
        assert layout is not None
        assert all(0 <= one.start < one.end <= layout.width for one in layout.places)
        assert odd in ("", "0", "7"), odd
    assert max(map(len, told)) < 500
