"""Expected counts on the command line, and the publishable shares that follow from them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.cli.console import text_table
from rpexplore.cli.facts import row_facts
from rpexplore.common.files import file_bytes
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.expected_counts import (
    CV_LIMIT,
    ExpectedCounts,
    checked_count,
    checked_cv_limit,
)
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.domain.survey import SurveyDesign
from rpexplore.errors import RpexploreError, WorkloadError

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.analysis.area_usefulness import AreaUsefulness
    from rpexplore.analysis.queries import CountUsefulness
    from rpexplore.analysis.usefulness import Usefulness
    from rpexplore.domain.domain import Domain
    from rpexplore.planning.part_plan import PartPlan
    from rpexplore.planning.plan import Plan


def expected_from_options(
    domain: "Domain",
    count: float | None,
    file: Path | None,
    cv_limit: float | None,
    totals: dict[int, float] | None = None,
) -> tuple[ExpectedCounts, float] | None:
    """Expected counts and the largest CV of a publishable cell; None without such counts.

    totals: of areas, whose sum is the count if no other is given
    """
    if totals is not None and count is None and file is None:
        count = sum(totals.values())
    if count is not None and file is not None:
        raise RpexploreError("Give --expected-count N or --expected FILE, not both.")
    if count is None and file is None:
        if cv_limit is not None:
            raise RpexploreError(
                "--cv-limit goes with --expected-count N or --expected FILE; give one of them."
            )
        return None
    limit = CV_LIMIT if cv_limit is None else checked_cv_limit(cv_limit)
    if file is None:
        return ExpectedCounts.of_total(checked_count(count)), limit
    content = file_bytes(file, f"The file of expected counts {str(file)!r}", WorkloadError)
    return expected_counts_from_csv(domain, content, file.name), limit


def design_from_options(
    domain: "Domain",
    effects: list[str] | None,
    weight_cv: float | None,
    fraction: str | None,
    wanted: object,
) -> SurveyDesign | None:
    """The design of the survey, for the total error of expected counts; None if none is stated.

    wanted: what it is to be counted beside, expected counts or public tables; refused without
    """
    from rpexplore.workload.survey_text import design_from_texts

    design = design_from_texts(domain, effects or (), weight_cv, fraction)
    if design is not None and not wanted:
        raise RpexploreError(
            "--design-effect, --weight-cv and --sampling-fraction go with --expected-count N or "
            "--expected FILE, and with --require also with --public FILE; give one of them."
        )
    return design


def totals_from_option(plan: "Plan | PartPlan", file: Path | None) -> dict[int, float] | None:
    """Publicly known totals of areas, by their numbers; None without --expected-areas."""
    from rpexplore.domain.named_areas import totals_of_areas

    if file is None:
        return None
    areas = plan.part("areas")
    if areas is None:
        raise RpexploreError(
            f"--expected-areas goes with a plan for areas, and this is {plan.kind_text}; leave it "
            "out."
        )
    return {**totals_of_areas(areas.workload.tree, file)}


def usefulness_of(
    plan: "Plan | PartPlan",
    wanted: tuple[ExpectedCounts, float] | None,
    totals: dict[int, float] | None = None,
    design: SurveyDesign | None = None,
) -> dict[str, Any]:
    """What of each part of a plan is publishable, by kind; None without expected counts.

    Of adaptive tables, of which that is not known: of unbiased tables at the same budget. design:
    of a survey, whose sampling error counts beside the noise in tables
    """
    if wanted is None:
        return {part.kind: None for part in plan.parts}
    kinds = [part.kind for part in plan.parts]
    if design is not None and not {"tables", "rounds"} & set(kinds):
        raise WorkloadError(
            "The design of a survey counts in tables only, and the plan has none; leave it out."
        )
    return {part.kind: _USEFULNESS[part.kind](part, *wanted, totals, design) for part in plan.parts}


def usefulness_facts(useful: dict[str, Any]) -> dict[str, Any]:
    """What `usefulness_of` a plan found, in plain values, under a name that says of what.

    Of several parts by kind.
    """
    facts = {kind: found and _FACTS[kind](found) for kind, found in useful.items()}
    if len(facts) > 1:
        return {"publishable": facts}
    ((kind, found),) = facts.items()
    return {"publishable_if_unbiased" if kind == "rounds" else "publishable": found}


def usefulness_text(useful: dict[str, Any]) -> str:
    """What `usefulness_of` a plan found, for reading."""
    texts = {
        kind: _TEXTS[kind](found)
        for kind, found in useful.items()
        if found is not None or kind == "rounds"  # whether to choose it is said in any case
    }
    return texts_of_parts(texts)


def texts_of_parts(texts: dict[str, str]) -> str:
    """What is said of each kind of part, below its title if there are several."""
    from rpexplore.planning.plan import TITLES

    if len(texts) < 2:
        return "\n\n".join(texts.values())
    return "\n\n".join(f"{TITLES[kind]}:\n\n{text}" for kind, text in texts.items())


# ---- by kind of part


def _of_tables(
    part: Any, expected: ExpectedCounts, limit: float, _: Any, design: SurveyDesign | None
) -> "Usefulness":
    from rpexplore.analysis.usefulness import publishable

    return publishable(part, expected, cv_limit=limit, survey=design)


def _of_areas(
    part: Any, expected: ExpectedCounts, limit: float, totals: dict[int, float] | None, _: Any
) -> "AreaUsefulness":
    from rpexplore.analysis.area_usefulness import publishable_in_areas

    return publishable_in_areas(part, expected, cv_limit=limit, totals=totals)


def _of_counts(part: Any, expected: ExpectedCounts, limit: float, *_: Any) -> "CountUsefulness":
    from rpexplore.analysis.queries import CountUsefulness

    useful = CountUsefulness.of(part, expected, limit)
    if isinstance(useful, str):
        raise WorkloadError(f"What is publishable is not known: {useful}")
    return useful


def _of_rounds(
    part: Any, expected: ExpectedCounts, limit: float, _: Any, design: SurveyDesign | None
) -> "Usefulness":
    from rpexplore.analysis.adaptive import unbiased_alternative

    return _of_tables(unbiased_alternative(part), expected, limit, _, design)


def _facts_of_tables(useful: "Usefulness") -> dict[str, Any]:
    return {
        "expected_counts": useful.cells.expected.text,
        "cv_limit": useful.cv_limit,
        "share": None if np.isnan(useful.share) else useful.share,
        "cell_count": int(useful.n_cells),
        "tables_in_full": useful.whole,
        "tables_in_part": useful.partly,
        "tables_not": useful.none,
        "by_attributes": row_facts(useful.by_order()),
        "by_level": row_facts(useful.by_level()),
        **({} if useful.cells.survey is None else {"survey": useful.cells.survey.to_json()}),
    }


def _facts_of_areas(useful: "AreaUsefulness") -> dict[str, Any]:
    return {
        "expected_counts": useful.expected_text,
        "cv_limit": useful.cv_limit,
        "share": useful.share,
        "cell_count": useful.n_cells,
        "by_level": row_facts(useful.by_level),
        "by_table": row_facts(useful.of_tables),
    }


def _facts_of_counts(useful: "CountUsefulness") -> dict[str, Any]:
    return {
        "expected_counts": useful.expected_text,
        "cv_limit": useful.cv_limit,
        "share": useful.share,
        "query_count": useful.queries,
        "publishable_count": useful.publishable,
    }


def _text_of_tables(useful: "Usefulness") -> str:
    """The publishable share by number of attributes, by level of a hierarchy, and in all."""
    if not useful.cells.held.any():
        return useful.cells.left_out_text
    by_order, by_level = useful.by_order(), useful.by_level()
    levels = (by_level["attribute"] + ", " + by_level["level"]).tolist()
    parts = [
        f"Expected counts: {useful.cells.expected.text}.",
        _table("tables by attributes", by_order["attributes"].tolist(), by_order),
        *([_table("cells by level", levels, by_level)] if levels else []),
        useful.describe(),
        useful.cells.left_out_text,
    ]
    return "\n\n".join(filter(None, parts))


def _text_of_areas(useful: "AreaUsefulness") -> str:
    rows = useful.by_level
    table = text_table(
        {
            "level": rows["level"].tolist(),
            "tables": [f"{count:,}" for count in rows["tables"]],
            "in full": [f"{count:,}" for count in rows["in_full"]],
            "cells": [f"{count:,}" for count in rows["cells"]],
            "records in the median area": [rounded(count, 3) for count in rows["median_count"]],
            "publishable": [describe_share(share) for share in rows["share"]],
        }
    )
    return "\n\n".join((f"Expected counts: {useful.expected_text}.", table, useful.describe()))


def _text_of_counts(useful: "CountUsefulness") -> str:
    return f"Expected counts: {useful.expected_text}.\n\n{useful.describe()}"


def _text_of_rounds(useful: "Usefulness | None") -> str:
    from rpexplore.analysis.adaptive import when_to_choose

    return "\n".join(when_to_choose(useful))


_USEFULNESS: dict[str, Callable[..., Any]] = {
    "tables": _of_tables, "areas": _of_areas, "counts": _of_counts, "rounds": _of_rounds,
}  # fmt: skip
_FACTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "tables": _facts_of_tables, "areas": _facts_of_areas, "counts": _facts_of_counts,
    "rounds": _facts_of_tables,
}  # fmt: skip
_TEXTS: dict[str, Callable[[Any], str]] = {
    "tables": _text_of_tables, "areas": _text_of_areas, "counts": _text_of_counts,
    "rounds": _text_of_rounds,
}  # fmt: skip


def _table(heading: str, names: list[str], rows: "pd.DataFrame") -> str:
    return text_table(
        {
            heading: names,
            "tables": [f"{count:,}" for count in rows["tables"]],
            **({"in full": [f"{count:,}" for count in rows["whole"]]} if "whole" in rows else {}),
            "cells": [f"{count:,.0f}" for count in rows["cells"]],
            "median count": [rounded(count, 3) for count in rows["median_count"]],
            "margin of error": [rounded(margin, 4, zeros=True) for margin in rows["margin_95"]],
            "publishable": [describe_share(share) for share in rows["share"]],
        }
    )
