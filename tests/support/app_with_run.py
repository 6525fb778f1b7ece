"""The app, in which a release begins as a click on the Release page would begin it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st

from rpexplore.data.files.source import FileSource
from rpexplore.planning.plan import load_plan
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.scenarios.scenario import Scenario
from rpexplore.serving.release_tasks import ReleaseInputs, ReleaseTask
from rpexplore.serving.server import lifespan, middleware

SCRIPT = Path(__file__)
FOLDER = "RPEXPLORE_TEST_FOLDER"  # a variable: where plan.json and records.csv are
BEGUN = "begun"  # a file that is there once the run has begun
OUTPUT = "release"


@asynccontextmanager
async def _lifespan_with_run(server: Any) -> AsyncIterator[None]:
    folder = Path(os.environ[FOLDER])
    data = FileSource(folder / "records.csv")
    ledger = Ledger.beside(data)
    plan = load_plan(folder / "plan.json")
    inputs = ReleaseInputs(
        plan=plan,
        scenario=Scenario(plan.domain),
        data=data,
        output=folder / OUTPUT,
        unknown_values={},
        missing_values={},
        person_rule=None,
        ledger=ledger,
        limit=None,
        account=ledger.account(data),
    )
    async with lifespan(server):
        assert ReleaseTask.begin(inputs, "")
        (folder / BEGUN).touch()
        yield


if FOLDER in os.environ:  # not where its test imports the names above
    app = st.App(
        str(Path(__file__).parents[2] / "app.py"),
        middleware=middleware(),
        lifespan=_lifespan_with_run,
    )
