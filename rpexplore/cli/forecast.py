"""The verbs that forecast how good tables will be, and suggest what would make them good enough."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from rpexplore.cli import area_options, forecast_options, options
from rpexplore.cli.console import progress, refuse_existing, say, say_json, text_table, write_new
from rpexplore.cli.look import load_verified
from rpexplore.common.processes import Progress
from rpexplore.common.text import csv_of_frame, joined
from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.domain.public_tables import PublicTables
    from rpexplore.domain.survey import SurveyDesign
    from rpexplore.planning.areas.area_plan import AreaPlan
    from rpexplore.planning.plan import Plan

_ALIGNMENT, _ALIGNMENT_TOGETHER = "><><>>>", "><>>>>>>"  # of proposals
_MOST_LISTED = 20  # tables, unless more are asked for


def forecast(
    plan_file: options.PlanOrRun,
    given: forecast_options.Given,
    expected_areas: area_options.ExpectedAreas = None,
    by_group: forecast_options.ByGroup = None,
    tables: options.HowMany = None,
    csv: options.CsvOut = None,
    out: forecast_options.ForecastOut = None,
    rest: forecast_options.Rest = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Forecast how many cells and tables will be good enough.

    And how many people: all before any record is read, and with ranges. A cell is good if the
    standard error of its noise is at most --limit of its count. What no public table says of the
    counts is drawn again and again: figures are medians, with the range that 90 % of the draws are
    in. A plan with a rule is judged by it, unless --limit or --share is given. With the design of a
    sample survey the error is the total one, of noise and sampling. All parts of the plan are
    forecast: tables, tables in areas, own counts; adaptive tables as if they were unbiased.
    """
    from rpexplore.analysis.forecast import GOOD_SHARE, Forecast, public_tables_of
    from rpexplore.cli.facts import row_facts
    from rpexplore.cli.publishable import totals_from_option
    from rpexplore.domain.expected_counts import CV_LIMIT
    from rpexplore.planning.rest import stating_rest
    from rpexplore.releases.finished_release import Release
    from rpexplore.releases.pilot import pilot_folder
    from rpexplore.results.pilot_tables import planned_run

    if csv is not None:
        refuse_existing(csv, force)
    for file in filter(None, (out, rest)):
        refuse_existing(file, force)
    of_run: list[Path] = []
    with progress("Reading the plan"):
        if plan_file.is_file() or not (plan_file.is_dir() or pilot_folder(plan_file).is_dir()):
            plan = load_verified(plan_file)
        else:
            plan, release = planned_run(plan_file)
            of_run.append(release)
        totals = totals_from_option(plan, expected_areas)
    part = plan.part("tables")
    if rest is not None and not of_run:
        raise RpexploreError(
            "--rest is made from the figures of a pilot; name the folder of the run whose pilot is "
            "released, in place of its plan."
        )
    if rest is not None:  # before populations are drawn, which takes seconds
        stating_rest(plan.booked)
        if Release.load(of_run[0]).plan.part("tables").pilot_of != plan.booked_sha256:
            raise RpexploreError(
                f"{str(of_run[0])!r} is a whole release, whose rest is measured; --rest is made "
                "from the figures of a pilot: name a folder of --pilot-only."
            )
    if part is None and (by_group or csv is not None or out is not None):
        raise RpexploreError(
            "--by-group, --csv and --out are about tables, and this plan has none; leave them out."
        )
    limits = {float(rule.cv) for rule in (part.rules if part else ())}
    survey, noun = given.survey(plan.domain), plan.budget.counted_as(given.record_noun)
    number: float | None = given.expected_count
    if totals is not None and number is None and not given.public:
        number = sum(totals.values())
    of_rule = limits.pop() if len(limits) == 1 else CV_LIMIT
    cv_limit = of_rule if given.limit is None else given.limit
    made = None
    with progress("Drawing populations") as on_progress:
        sources = forecast_options.public_sources([*(given.public or ()), *of_run])
        known = public_tables_of(plan.domain, sources, number)
        if part is not None:
            made = Forecast(
                plan,
                public=known.tables,
                expected=known.expected,
                limit=cv_limit,
                share=GOOD_SHARE if given.share is None else given.share,
                require=None if given.limit is None and given.share is None else (),
                on_progress=on_progress,
                survey=survey and survey.among(part.workload.tables),
                noun=noun,
            )
        others = _other_parts(plan, known, cv_limit, given.share, totals, survey, noun)
        listed = None if made is None else made.tables()
        groups = {} if made is None else {name: made.by_group(name) for name in by_group or ()}
        if csv is not None and listed is not None:
            write_new(csv, csv_of_frame(listed), force)
        if out is not None and made is not None:
            made.in_plan().save(out)
        of_rest = None if rest is None else _plan_of_rest(plan, of_run[0], rest, on_progress)
    if as_json:
        facts = {}
        if made is not None and listed is not None:
            facts = made.to_json()
            if by_group:
                facts["by_group"] = {name: row_facts(frame) for name, frame in groups.items()}
            first = listed if tables is None else listed.head(tables)
            files = {"csv": csv and str(csv), "plan": out and str(out)}
            facts |= {"list": row_facts(first), **files}
        if of_rest is not None:
            facts["rest"] = of_rest[0]
        say_json(facts | {name: own for name, own, _ in others})
        return
    parts = []
    if made is not None and listed is not None:
        parts += [str(made), _text(made.by_order(), "attributes", "meeting", made.whom)]
        first = listed.head(_MOST_LISTED if tables is None else tables)
        more = len(listed) - len(first)
        hint = f"\n… and {more:,} more: --tables {len(listed)} shows all, --csv FILE writes all."
        parts.append(
            f"Tables with the fewest {made.whom} in good cells\n"
            + _text(first, "table", "meets", made.whom)
            + (hint if more else "")
        )
    for name, frame in groups.items():
        parts.append(f"{noun.capitalize()} by {name}\n{_text(frame, 'value', 'count', noun)}")
    say("\n\n".join([*parts, *(text for _, _, text in others)]))
    if csv is not None and listed is not None:
        say(f"All {len(listed):,} tables are in {csv}.")
    if out is not None and made is not None:
        say(f"The plan with this forecast is in {out}\nSHA-256 {made.in_plan().sha256}")
    if of_rest is not None:
        say(of_rest[1])


def _plan_of_rest(
    plan: "Plan", release: Path, file: Path, on_progress: "Progress"
) -> tuple[dict[str, Any], str]:
    """Write the plan of what is measured behind a pilot; what it is, as facts and as text.

    plan: of the run, or of the rest that was planned for it before
    release: of the pilot
    """
    from rpexplore.analysis.most_people import planned_rest
    from rpexplore.results.pilot_tables import pilot_tables

    first = plan.booked
    rest = planned_rest(first, pilot_tables(release), on_progress)
    made, found = rest.plan, rest.found
    made.save(file)
    output = quote(str(release).removesuffix("-pilot"))
    facts = {
        "plan": str(file),
        "sha256": made.sha256,
        "first_plan_sha256": first.sha256,
        "limit": found.limit,
        "people": found.people._asdict(),
        "before": found.before._asdict(),
    }
    text = (
        f"{rest.text}\nThe plan of the rest is in {file}, with "
        f"{joined([*made.companions])} beside it\nSHA-256 {made.sha256}\n"
        "Release it, at no further cost:\n"
        f"  rpexplore release {quote(str(file))} DATA --resume --out {output}"
    )
    return facts, text


def _other_parts(
    plan: "Plan",
    public: "PublicTables",
    limit: float,
    share: float | None,
    totals: dict[int, float] | None,
    survey: "SurveyDesign | None",
    noun: str,
) -> list[tuple[str, Any, str]]:
    """Of areas, best guesses for them, own counts and adaptive tables: a name, facts, and text."""
    from rpexplore.analysis.forecast import public_tables_among
    from rpexplore.cli.facts import row_facts
    from rpexplore.cli.publishable import (
        NAMES,
        guesses_of,
        guesses_text,
        text_of_part,
        usefulness_of_part,
    )
    from rpexplore.domain.expected_counts import ExpectedCounts

    found: list[tuple[str, Any, str]] = []
    for part in (part for part in plan.parts if part.kind != "tables"):
        known = public_tables_among(part.domain, public)
        useful = usefulness_of_part(
            part, known, limit, share=share, totals=totals, design=survey, noun=noun
        )
        found.append((NAMES[part.kind], useful.to_json(), text_of_part(part, useful)))
        if part.kind == "areas":
            # Of one public table its cells; of several what they agree on, the number of records.
            counts = [table.counts for table in known.tables if not table.is_shares]
            expected = counts[0] if len(counts) == 1 else ExpectedCounts.of_total(known.n_records)
            guesses = guesses_of(plan, (expected, limit), totals)
            if guesses is not None:
                rows = row_facts(guesses)
                found.append(("best_guesses_in_areas", rows, guesses_text(guesses)))
    return found


def suggest(
    plan_file: options.PlanFile,
    given: forecast_options.Given,
    expected_areas: area_options.ExpectedAreas = None,
    table: options.Table = None,
    tables: forecast_options.SuggestTables = 5,
    together: forecast_options.Together = False,
    apply: forecast_options.Apply = None,
    out: forecast_options.AppliedOut = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Suggest what would make tables good enough that are not.

    Of each table that misses: coarser levels, bands, rare values merged, an attribute or the table
    left out, more weight, more budget; of tables in areas also a coarser level of areas. All are
    planned anew, at the same budget unless they are more budget, and forecast; beside each stands
    what it costs the other tables. Tables are judged by --limit and --share; without them by the
    plan's rule, if it has one about people. Name a table in areas with its level: --table town,age.
    """
    from rpexplore.analysis.area_forecast import AreaForecast
    from rpexplore.analysis.forecast import (
        GOOD_SHARE,
        Forecast,
        public_tables_among,
        public_tables_of,
    )
    from rpexplore.cli.publishable import totals_from_option
    from rpexplore.domain.expected_counts import CV_LIMIT
    from rpexplore.workload.table_text import table_from_text

    is_one = together or len(table or ()) == 1
    if (apply is None) != (out is None) or (apply is not None and not is_one):
        raise RpexploreError(
            "To apply a proposal, name its table (or --together), its number and a file for the "
            "plan: --table age,sex --apply 1 --out new-plan.json."
        )
    if together and (table or expected_areas is not None):
        raise RpexploreError(
            "Changes of several tables at once (--together) are of all noisy tables that miss; "
            "leave --table and --expected-areas out."
        )
    if out is not None:
        refuse_existing(out, force)
    with progress("Reading the plan"):
        plan = load_verified(plan_file)
        part, areas = plan.part("tables"), plan.part("areas")
        if part is None and areas is None:
            raise RpexploreError(
                "Changes are suggested for noisy tables and tables in areas, and this plan has "
                "none. “rpexplore forecast” says what its parts miss."
            )
        if part is None and together:
            raise RpexploreError(
                "Changes of several tables at once are not there for tables in areas, and this "
                "plan has no others; leave --together out."
            )
        on_levels, texts = _split_by_level(areas, table or [])
        named = [table_from_text((part or areas).domain, text) for text in texts]
        if named and part is None:
            raise RpexploreError(
                f"The table {texts[0]!r} names no level of areas, and this plan has tables in "
                f"areas alone; write {areas.workload.tree.levels[-1]},{texts[0]}."
            )
        survey = given.survey(plan.domain)
        totals = totals_from_option(plan, expected_areas)
    limit, share = given.limit, given.share
    about_people = {rule for rule in (part.rules if part else ()) if rule.of == "people"}
    if len(about_people) == 1:
        (rule,) = about_people
        limit = float(rule.cv) if limit is None else limit
        share = float(rule.share) if share is None else share
    limit = CV_LIMIT if limit is None else limit
    share = GOOD_SHARE if share is None else share
    noun = plan.budget.counted_as(given.record_noun)
    number: float | None = given.expected_count
    if totals is not None and number is None and not given.public:
        number = sum(totals.values())
    found, good = [], []
    with progress("Drawing populations") as on_progress:
        known = public_tables_of(plan.domain, forecast_options.public_sources(given.public), number)
        made = in_areas = None
        if part is not None and (named or not on_levels):
            made = Forecast(
                plan, known.tables, known.expected, limit, share,
                require=(), on_progress=on_progress, survey=survey, noun=noun,
            )  # fmt: skip
        if areas is not None and (on_levels or not named) and not together:
            own = public_tables_among(areas.domain, known)
            in_areas = AreaForecast(
                plan, own.tables, own.expected, limit, share, totals,
                survey and survey.among(areas.workload.tables.tables), on_progress, noun=noun,
            )  # fmt: skip
    with progress("Trying changes") as on_progress:
        saved = shared = None
        if made is not None and together:
            shared = made.suggest_together(on_progress=on_progress)
            good.append(made.meeting.text(lambda value: f"{value:.0f}"))
        elif made is not None:
            found += made.suggest(named, most=tables, on_progress=on_progress)
            good.append(made.meeting.text(lambda value: f"{value:.0f}"))
        if in_areas is not None:
            found += in_areas.suggest(on_levels, most=tables, on_progress=on_progress)
            good.append(in_areas.meeting.text(lambda value: f"{value:.0f}"))
        if apply is not None and out is not None:
            proposals = found[0].proposals if shared is None else shared.proposals
            if apply > len(proposals):
                whose = found[0].title if shared is None else "several tables at once"
                remedy = f"name one of 1 to {len(proposals)}"
                raise RpexploreError(
                    f"There is no proposal {apply} for {whose}; "
                    f"{remedy if proposals else 'none was found: leave --apply and --out out'}."
                )
            saved = proposals[apply - 1].apply(plan)
            saved.save(out)
    if as_json:
        plan_facts = saved and {"file": str(out), "sha256": saved.sha256}
        say_json(
            {
                "limit": limit,
                "share": share,
                "tables": [one.to_json() for one in found],
                **({} if shared is None else {"together": shared.to_json()}),
                "plan": plan_facts,
            }
        )
        return
    if shared is not None and shared.proposals:
        columns = {str(name): column.tolist() for name, column in shared.columns().items()}
        say(text_table(columns, _ALIGNMENT_TOGETHER))
        say("Forecast after planning anew. Apply one with --together --apply N --out FILE.")
    elif shared is not None:
        say(f"No one change makes more tables good enough: {joined(good)} meet.")
    elif not found:
        say(f"Every table is good enough: {joined(good)} meet.")
    for one in found:
        columns = {str(name): column.tolist() for name, column in one.columns().items()}
        say(f"{one}\n{text_table(columns, _ALIGNMENT)}\n")
    if found:
        say(
            "Forecast after planning anew; the variance of the others is their median change. "
            "Apply one with --table A,B --apply N --out FILE."
        )
    if saved is not None:
        say(f"Saved to {out}\nSHA-256 {saved.sha256}")


def _split_by_level(
    areas: "AreaPlan | None", texts: list[str]
) -> tuple[list[tuple[str, tuple[str, ...]]], list[str]]:
    """Tables that name a level of areas: (level, the other attributes); and the other texts."""
    if areas is None:
        return [], texts
    from rpexplore.cli.plan_inputs import split_by_level

    asked = {"table": texts, "tables": None, "weight": [], "target": [], "basis": []}
    at_levels, left = split_by_level(areas.domain, areas.workload.tree, asked)
    named = [(level, names) for level, own in at_levels.items() for names in own["table"]]
    return named, left["table"]


def _text(frame: "pd.DataFrame", title: str, last: str, whom: str) -> str:
    from rpexplore.analysis.ranges import range_columns

    columns = range_columns(frame, title, last, whom)
    return text_table({str(name): column.tolist() for name, column in columns.items()})
