"""Several plan files are checked at once, each told in one line."""

import json
from pathlib import Path

import pytest

from rpexplore.planning.plan import is_plan_file
from tests.cli.program import BUDGET, Program
from tests.support.plan_texts import laid_out

QUERIES = ("plan", "codebook.csv", "--count", "old: age = 'old' @ 1")
AREAS = ("plan", "areas-book.csv", "--areas", "homes.csv", "--separator", "|", "--detail", "same")


@pytest.fixture
def every_kind(planned) -> Program:
    """A plan of each kind, one that claims too much, and files that are no plans."""
    planned.done(*QUERIES, *BUDGET[2:], "--out", "queries.json")
    adaptive = ("--up-to", "2", "--rho", "0.1", "--adaptive", "--expected-count", "90")
    planned.done("plan", "codebook.csv", *adaptive, "--out", "adaptive.json")
    Path("areas-book.csv").write_text("attribute,value\nsex,F\nsex,M\n", "utf-8")
    Path("homes.csv").write_text("home\n1|1\n1|2\n2|1\n", "utf-8")
    planned.done(*AREAS, "--up-to", "1", *BUDGET[2:], "--out", "areas.json")
    content = json.loads(Path("queries.json").read_text("utf-8"))
    content["parts"][0]["gamma_squared"] = "1"
    Path("wrong.json").write_text(laid_out(content), "utf-8")
    Path("other.json").write_text('{"format": "another", "inside": {"format": "rpexplore-plan"}}')
    Path("list.json").write_text("[1, 2]")
    return planned


KINDS = ("plan.json", "queries.json", "adaptive.json", "areas.json")


@pytest.mark.nightly
def test_plans_of_every_kind_hold(every_kind):
    lines = every_kind.done("verify", *KINDS).splitlines()
    assert lines == [f"{name}: holds" for name in KINDS]
    facts = every_kind.json("verify", *KINDS)
    assert facts["holds"] is True
    assert [plan["plan"] for plan in facts["plans"]] == list(KINDS)
    alone = every_kind.json("verify", "plan.json")
    assert facts["plans"][0] == {"plan": "plan.json", **alone}


def test_all_problems_are_told_at_once(every_kind):
    result = every_kind("verify", "wrong.json", "plan.json", "other.json", "none.json")
    assert result.exit_code == 2
    wrong, holds, other, missing = result.stdout.splitlines()
    assert wrong.startswith("wrong.json: privacy cost: ")
    assert holds == "plan.json: holds"
    assert other.startswith("other.json: other.json is not a plan file")
    assert missing.startswith("none.json: ")
    assert every_kind("verify", "wrong.json", "plan.json").exit_code == 1
    facts = json.loads(every_kind("verify", "wrong.json", "none.json", "--json").stdout)
    assert facts["holds"] is False
    assert facts["plans"][1].keys() == {"plan", "error"}


def test_others_are_skipped_but_no_plan_that_is_broken(every_kind):
    others = ("other.json", "list.json")
    assert every_kind.done("verify", *others, "--skip-others") == "No plans.\n"
    assert every_kind.done("verify", "plan.json", *others, "--skip-others") == "plan.json: holds\n"
    text = Path("plan.json").read_text("utf-8")
    half = len(text) // 2
    Path("cut.json").write_text(text[:half], "utf-8")
    Path("merged.json").write_text(f"<<<<<<< ours\n{text}=======\n", "utf-8")
    Path("bytes.json").write_bytes(text[:half].encode() + b"\xff")
    for name in ("cut.json", "merged.json", "bytes.json"):
        assert is_plan_file(name)
        result = every_kind("verify", "plan.json", name, "--skip-others")
        assert result.exit_code == 2
        assert result.stdout.splitlines()[1].startswith(f"{name}: {name} is not a")
    Path("invalid.json").write_text("{,}")
    assert not is_plan_file("invalid.json")
