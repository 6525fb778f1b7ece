"""Exports of every kind of tables, in every format, from a codebook with awkward names."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.domain.result_schema import Schema
from rpexplore.planning.adaptive import adaptive_plan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import load_plan
from rpexplore.planning.planner import plan_tables
from rpexplore.results.combination import write_combined
from rpexplore.results.estimates.area_counts import area_guesses, whole_area_counts
from rpexplore.results.formats.publishing import FORMATS, publish
from rpexplore.results.noisy_marginal import NoisyMarginal
from rpexplore.results.results import AnyResults, load_any_results
from rpexplore.workload.bases import Prefix
from tests.support.made import Made
from tests.support.query_lists import query_plan

DOMAIN = rp.Domain(
    (
        rp.Attribute(
            "marital status",
            rp.Categories(("01", "02", "x y"), ("single", "married", 'other, "…"')),
        ),
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("Größe", rp.Integers(0, 4), "Body height"),
        rp.Attribute("value", rp.Categories(("=1+1", "a\nb"))),
    )
)
TREE = rp.AreaTree.from_columns(
    {"region": ["N", "N", "S"], "town": ["1", "2", "1"]}, names={"town": ["Aa", "Bb", "Cc"]}
)
# Each kind of results, and the release whose plan it goes back to.
KINDS = {
    "released": "released", "combined": "released", "smooth": "released", "whole": "released",
    "adaptive": "adaptive", "areas": "areas", "whole areas": "areas",
    "guesses": "areas", "own counts": "own counts",
    "amounts": "amounts",
}  # fmt: skip
IMPRINT = rp.Imprint(
    "Atlas of persons",
    "Statistics Office",
    "https://creativecommons.org/licenses/by/4.0/",
    agency="OFFICE.UNIT",
    period="2026-Q1",
)


@dataclass(frozen=True)
class Exported:
    """An export in all formats, the results that it was made of, and the plan of their release."""

    results: AnyResults
    source: Path
    folder: Path
    plan: PartPlan

    def last_decimal(self, frame: pd.DataFrame) -> float:
        """What the last decimal of a table is worth: a millionth of its smallest error, or less."""
        schema = Schema.of(frame)
        return frame[schema.name("error" if schema.has("error") else "model_error")].min() * 1e-6


@pytest.fixture(scope="session")
def sources(tmp_path_factory) -> Path:
    """Folders of results, one of each kind."""
    top = tmp_path_factory.mktemp("results")
    rng = np.random.default_rng(0)
    rows = {attribute.name: rng.choice(attribute.stored_values(20), 200) for attribute in DOMAIN}
    workload = rp.Workload.all_up_to(DOMAIN, 2).with_bases({"Größe": Prefix()})
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/10"))
    ledger = top / "ledger"
    released = rp.release(plan, pd.DataFrame(rows), top / "released", name="s", ledger=ledger)
    rp.postprocess(released, top / "smooth", method="smooth")
    rp.postprocess(released, top / "whole", method="nonnegative", rounded=True)
    write_combined(rp.combine(released), top / "combined")
    elsewhere = NoisyMarginal.of(DOMAIN, "sex", [90, 110], 25)  # nobody stated its ρ
    write_combined(rp.combine(released, noisy=[elsewhere]), top / "partly stated")
    write_combined(rp.combine(noisy=[elsewhere]), top / "unstated")
    tables = rp.Workload.all_up_to(DOMAIN, 2)
    adaptive = adaptive_plan(tables, budget=rp.Budget(rho="1/10"), expected_records=200)
    rp.release(adaptive, pd.DataFrame(rows), top / "adaptive", name="s", ledger=ledger)
    in_areas = rp.AreaWorkload.of_levels(
        TREE, dict.fromkeys(TREE.levels, rp.Workload.of(DOMAIN, [("sex", "value"), ()]))
    )
    areas = plan_areas(in_areas, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/10"))
    places = rng.integers(0, 3, 200)
    rows |= {"region": np.array(["N", "N", "S"])[places], "town": np.array(["1", "2", "1"])[places]}
    of_areas = rp.release(areas, pd.DataFrame(rows), top / "areas", name="s", ledger=ledger)
    whole_area_counts(of_areas, top / "whole areas")
    area_guesses(of_areas, top / "guesses")
    own = rp.Domain(DOMAIN.attributes[1:3])  # sex and height
    coefficients = np.array([[0, 0, 1, 1, 1, *[0] * 5], [1] * 10])
    queries = rp.QueryList(own, coefficients, ("women, tall", "all"), np.array([9.0, 9.0]))
    counts = query_plan(queries, budget=rp.Budget(rho="1/10"))
    rp.release(counts, pd.DataFrame(rows), top / "own counts", name="s", ledger=ledger)
    income = rp.Attribute("income", rp.Amounts(0, 9, unit="EUR"))
    of_sums = rp.Workload.of(rp.Domain((DOMAIN.attributes[1], income)), [("sex", "income")])
    sums = plan_tables(of_sums, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/100000"))
    few = pd.DataFrame({"sex": ["f"], "income": [3]})  # the noise, 200 and more, hides every mean
    rp.release(sums, few, top / "amounts", name="t", ledger=ledger)
    return top


@pytest.fixture(scope="session")
def exports(sources, tmp_path_factory) -> Made[Exported]:
    top = tmp_path_factory.mktemp("exports")

    def export(kind: str) -> Exported:
        publish(sources / kind, top / kind, formats=list(FORMATS), imprint=IMPRINT)
        plan = load_plan(sources / KINDS[kind] / "plan.json")
        return Exported(load_any_results(sources / kind), sources / kind, top / kind, plan)

    return Made({kind: partial(export, kind) for kind in KINDS})


# Judges look at all kinds by night: by day at those whose columns differ most.
@pytest.fixture(
    params=[
        kind
        if kind in ("released", "areas", "own counts", "amounts")
        else pytest.param(kind, marks=pytest.mark.nightly)
        for kind in KINDS
    ]
)
def exported(request, exports) -> Exported:
    return exports[request.param]
