"""Expected counts on the command line, and what plans are worth by them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpexplore.cli.console import text_table
from rpexplore.common.files import file_bytes
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import (
    CV_LIMIT,
    ExpectedCounts,
    checked_cv_limit,
    checked_records,
)
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.domain.public_tables import PublicTables
from rpexplore.domain.survey import SurveyDesign
from rpexplore.errors import RpexploreError, WorkloadError

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.analysis.adaptive import RoundsForecast
    from rpexplore.analysis.area_forecast import AreaForecast
    from rpexplore.analysis.forecast import Forecast
    from rpexplore.analysis.queries import CountUsefulness
    from rpexplore.domain.area_tree import AreaTree
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
        return ExpectedCounts.of_total(checked_records(count)), limit
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
    areas = plan.part("areas")
    if file is not None and areas is None:
        raise RpexploreError(
            f"--expected-areas goes with a plan for areas, and this is {plan.kind_text}; leave it "
            "out."
        )
    return totals_of_tree(None if areas is None else areas.workload.tree, file)


def totals_of_tree(tree: "AreaTree | None", file: Path | None) -> dict[int, float] | None:
    """The same for the areas of a codebook, of which there must be some."""
    from rpexplore.domain.named_areas import totals_of_areas

    if file is None:
        return None
    if tree is None:
        raise RpexploreError(
            "--expected-areas goes with a codebook that has areas, or with --areas; give areas, or "
            "leave it out."
        )
    return {**totals_of_areas(tree, file)}


def usefulness_of(
    plan: "Plan | PartPlan",
    wanted: tuple[ExpectedCounts, float] | None,
    totals: dict[int, float] | None = None,
    design: SurveyDesign | None = None,
    noun: str | None = None,
) -> dict[str, Any]:
    """What each part of a plan is worth, by kind; None without expected counts.

    Of tables and areas a forecast; of adaptive tables what is known of them, and the forecast of
    unbiased tables at the same budget; of own counts what is publishable. design: of a survey,
    whose sampling error counts beside the noise in tables; noun: for those whom tables count, by
    default the plan's
    """
    if wanted is None:
        return {part.kind: None for part in plan.parts}
    expected, limit = wanted
    if design is not None and not {part.kind for part in plan.parts} - {"counts"}:
        raise WorkloadError(
            "The design of a survey counts in tables only, and the plan has none; leave it out."
        )
    from rpexplore.analysis.forecast import forecast_by, public_tables_by

    found: dict[str, Any] = {}
    part: Any
    for part in plan.parts:
        if part.kind == "tables":
            found["tables"] = forecast_by(part, expected, limit, design, noun)
            continue
        public = public_tables_by(part.domain, expected)
        found[part.kind] = usefulness_of_part(
            part, public, limit, totals=totals, design=design, noun=noun
        )
    return found


def usefulness_of_part(
    part: Any,
    public: "PublicTables",
    limit: float,
    *,
    share: float | None = None,
    totals: dict[int, float] | None = None,
    design: SurveyDesign | None = None,
    noun: str | None = None,
) -> "AreaForecast | RoundsForecast | CountUsefulness":
    """The same of areas, adaptive tables or own counts, by public tables."""
    from rpexplore.analysis.forecast import GOOD_SHARE

    share = GOOD_SHARE if share is None else share
    if part.kind == "areas":
        from rpexplore.analysis.area_forecast import area_forecast_by

        return area_forecast_by(part, public, limit, totals, design, share, noun)
    if part.kind == "rounds":
        from rpexplore.analysis.adaptive import RoundsForecast

        return RoundsForecast.of(part, public, limit, design, share, noun)
    from rpexplore.analysis.queries import CountUsefulness

    useful = CountUsefulness.of(part, public, limit)
    if isinstance(useful, str):
        raise WorkloadError(f"What is publishable is not known: {useful}")
    return useful


def usefulness_facts(useful: dict[str, Any]) -> dict[str, Any]:
    """What `usefulness_of` a plan found, in plain values, under a name that says of what."""
    return {
        NAMES[kind]: None if found is None else found.to_json() for kind, found in useful.items()
    }


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
    from rpexplore.planning.part_plan import TITLES

    if len(texts) < 2:
        return "\n\n".join(texts.values())
    return "\n\n".join(f"{TITLES[kind]}:\n\n{text}" for kind, text in texts.items())


def text_of_part(part: "PartPlan", found: Any) -> str:
    """What was found for a part of a plan, for reading."""
    return _TEXTS[part.kind](found)


# ---- best guesses for areas


def guesses_of(
    plan: "Plan",
    wanted: tuple[ExpectedCounts, float] | None,
    totals: dict[int, float] | None = None,
) -> "pd.DataFrame | None":
    """The errors of best guesses for areas to expect, by level; None where there are none.

    totals: how many records areas hold
    """
    if wanted is None or plan.part("areas") is None:
        return None
    from rpexplore.results.estimates.area_guess_errors import guess_errors_of

    return guess_errors_of(plan, *wanted, totals)


def guesses_text(errors: "pd.DataFrame | None") -> str:
    """The same for reading; "" for none."""
    if errors is None:
        return ""
    columns = {
        "level": errors["level"].tolist(),
        "records of the area": [rounded(size, 3) for size in errors["size"]],
    }
    names = {"unbiased": "σ unbiased", "alike": "σ areas alike", "differing": "σ areas differ"}
    for name, heading in names.items():
        columns[heading] = [rounded(error, 3) for error in errors[name]]
        good = [describe_share(share) for share in errors[f"people_{name}"]]
        columns[heading.replace("σ", "good cells,")] = good
    return (
        "Best guesses for areas, made after the run (postprocess --best-guesses): errors to expect "
        "in an area of median size and noise, were the lowest areas equally large, if areas differ "
        "by chance alone (alike), and if the shares of their cells also vary by half (differ); and "
        "the share of records in good cells, of areas of all sizes.\n\n"
        f"{text_table(columns)}"
    )


# ---- by kind of part


def _text_of_tables(made: "Forecast") -> str:
    """The forecast in all, and by number of attributes."""
    from rpexplore.analysis.ranges import range_columns

    columns = range_columns(made.by_order(), "attributes", "meeting", made.whom)
    table = text_table({str(name): column.tolist() for name, column in columns.items()})
    return f"{made}\n{table}"


def _text_of_areas(made: "AreaForecast") -> str:
    from rpexplore.analysis.area_forecast import levels_for_reading

    columns = levels_for_reading(made)
    table = text_table({str(name): column.tolist() for name, column in columns.items()})
    return f"{made}\n{table}"


def _text_of_counts(useful: "CountUsefulness") -> str:
    return f"{useful.describe()} This rests on {useful.rests_on}."


def _text_of_rounds(useful: "RoundsForecast | None") -> str:
    from rpexplore.analysis.adaptive import when_to_choose

    return "\n".join(when_to_choose(useful))


NAMES = {  # of what is forecast of a part, in JSON
    "tables": "forecast", "areas": "forecast_in_areas", "counts": "publishable",
    "rounds": "forecast_if_unbiased",
}  # fmt: skip
_TEXTS: dict[str, Callable[[Any], str]] = {
    "tables": _text_of_tables, "areas": _text_of_areas, "counts": _text_of_counts,
    "rounds": _text_of_rounds,
}  # fmt: skip
