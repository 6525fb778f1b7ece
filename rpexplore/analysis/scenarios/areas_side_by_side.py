"""The areas of scenarios side by side: what is asked for them, and how accurate that will be."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pandas as pd

from rpexplore.analysis.areas.accuracy import level_accuracy
from rpexplore.analysis.scenarios.side_by_side import texts_side_by_side
from rpexplore.common.formatting import plural, rounded
from rpexplore.planning.accuracy_frame import Z_95
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.scenario import Scenario


@dataclass(frozen=True, eq=False)
class AreaOutcome:
    """What is compared of a plan for areas, which itself may hold millions of numbers.

    levels  of `level_accuracy`
    """

    loss: float
    rho: Fraction
    levels: pd.DataFrame

    @classmethod
    def of(cls, plan: AreaPlan) -> "AreaOutcome":
        return cls(plan.loss_value, plan.rho, level_accuracy(plan))


def area_inputs(scenarios: Sequence[Scenario]) -> pd.DataFrame:
    """What was chosen for the areas of scenarios that have some, as `side_by_side.inputs`."""
    studies = [scenario.areas for scenario in scenarios if scenario.areas is not None]
    texts = {
        "Areas": [
            f"{study.areas.n_areas:,} on {plural(len(study.levels), 'level')}, {study.filename}"
            for study in studies
        ],
        "Other attributes": [", ".join(study.domain.names) for study in studies],
        "Tables": [_tables(study) for study in studies],
        "Tables in all areas": [f"{study.n_tables:,}" for study in studies],
        "Objective": [study.loss.title for study in studies],
        "Noise": [
            "the same for all areas of a level" if study.uniform else "each area its own"
            for study in studies
        ],
        "Privacy budget": [rho_text(scenario.budget.rho) for scenario in scenarios],
        "Privacy unit": [scenario.budget.unit for scenario in scenarios],
    }
    values = [
        [(study.areas.sha256, text) for study, text in zip(studies, texts["Areas"], strict=True)],
        [study.domain for study in studies],
        [study.settings for study in studies],
        texts["Tables in all areas"],
        [study.loss for study in studies],
        texts["Noise"],
        [scenario.budget.privacy_cost for scenario in scenarios],
        texts["Privacy unit"],
    ]
    return texts_side_by_side(texts, values)


def _tables(study: AreaStudy) -> str:
    """How many tables the levels are asked for, in a few words."""
    counts = {level: len(study.tables.get(level, ())) for level in study.levels}
    if len(set(counts.values())) == 1:
        return f"{plural(next(iter(counts.values())), 'table')} on every level"
    return ", ".join(f"{level} {count:,}" for level, count in counts.items())


def area_outcomes(scenarios: Sequence[Scenario], outcomes: Sequence[AreaOutcome]) -> pd.DataFrame:
    """Objective, privacy and accuracy by level of these scenarios; digits shown are compared."""
    levels = dict.fromkeys(level for one in outcomes for level in one.levels["level"])
    texts = {
        "Objective, the less the better": [rounded(one.loss, 4) for one in outcomes],
        "Privacy, ρ": [rounded(one.rho, 4, "up") for one in outcomes],
    }
    for level in levels:
        texts[f"{level}, 95 % margin of error"] = [
            _margin(one, level, "standard_error", scenario.record_noun)
            for scenario, one in zip(scenarios, outcomes, strict=True)
        ]
    for level in levels:
        texts[f"{level}, least accurate area"] = [
            _margin(one, level, "largest_standard_error", scenario.record_noun)
            for scenario, one in zip(scenarios, outcomes, strict=True)
        ]
    return texts_side_by_side(texts, list(texts.values()))


def _margin(outcome: AreaOutcome, level: str, name: str, noun: str) -> str:
    of_level = outcome.levels.loc[outcome.levels["level"] == level, name]
    if of_level.empty:
        return "not asked for"
    return f"±{rounded(Z_95 * float(of_level.iloc[0]), 3)} {noun}"
