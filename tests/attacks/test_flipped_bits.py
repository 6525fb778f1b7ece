"""Files with one bit changed, or cut off: refused, or read as what they were."""

import os
import random
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger import Ledger
from tests.attacks.malformed import flipped

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
FLIPS = 1500 if NIGHTLY else 100


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "records.csv"
    path.write_text("a\n0\n1\n")
    return path


def test_of_a_ledger(data, tmp_path):
    domain = rp.Domain.from_sizes({"a": 2})
    plan = rp.plan(
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
