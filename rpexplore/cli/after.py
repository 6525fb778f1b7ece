"""The verbs that work on releases and cost no privacy, for tables and for areas."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpexplore.cli import area_options, inputs, options
from rpexplore.cli.console import progress, refuse_existing, say_result, text_table, write_new
from rpexplore.common.numbers import shown_few
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.errors import ReleaseError, RpexploreError

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.domain.domain import Domain
    from rpexplore.planning.areas.area_sums import AreaName
    from rpexplore.planning.part_plan import PartPlan
    from rpexplore.planning.plan import Plan
    from rpexplore.releases.area_release import TablesInAreas
    from rpexplore.releases.items import Answer
    from rpexplore.results.area_results import AreaTables


# ---- The verbs that work on releases and cost no privacy.


# Each verb imports what it needs itself, so that none waits for what it does not use.


def answer(
    release_folder: options.ReleaseFolder,
    where: options.Where = None,
    areas: area_options.ListsOfAreas = None,
    area: area_options.OneArea = None,
    level: area_options.AnswerLevel = None,
    within: area_options.AnswerWithin = None,
    per: options.Per = None,
    among: options.Among = None,
    csv: area_options.SumsOut = None,
    escape_formulas: options.EscapeFormulas = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Answer a query from a release, with its margin.

    Say which values count: age=18..24 sex=Female counts those who are both. Attributes that are not
    named are summed over. If some table has those that are named, the standard error is exact, with
    all covariances of what is added up. Otherwise a model is fitted to the tables, and its answer
    says "by a model": it is biased, and its error comes from simulated questions. In quotation
    marks each text is a question of its own: "age=18..24 sex=Female" "age=65.. region=R01". Costs
    no privacy.

    From a release of tables in areas: with --areas sums over lists of areas, of the table of the
    attributes that are named (sex age), or totals. With --area the same of one area, or the query
    about it that names values (sex=Female); with --level the query about each area of a level. A
    count of your own is answered by its name.

    With --per the answer is a share in per cent: status=unemployed --per region, of the records of
    each region; empty where there are too few of these (CV above 20 %).
    """
    from rpexplore.domain.values import product_query
    from rpexplore.results.results import load_any_results
    from rpexplore.results.synthetic.questions import Questions

    if sum(option is not None for option in (area, areas, level)) > 1:
        raise RpexploreError(
            "Give --area CODE for one area, --areas FILE for lists of them, or --level LEVEL for "
            "all of a level: one of these."
        )
    if within is not None and level is None:
        raise RpexploreError("--within goes with --level; for the area itself give --area CODE.")
    if among and not per:
        raise RpexploreError("--among goes with --per; name the values that count without it.")
    if per and areas is not None:
        raise RpexploreError("--per goes with --area or --level, and not with lists of areas.")
    if per:
        answer_shares(
            release_folder,
            where or [],
            per,
            among or [],
            area=area,
            level=level,
            within=within,
            csv=csv,
            escape_formulas=escape_formulas,
            force=force,
            as_json=as_json,
        )
        return
    if level is not None:
        answer_on_level(
            release_folder,
            level,
            within,
            where or [],
            csv=csv,
            escape_formulas=escape_formulas,
            force=force,
            as_json=as_json,
        )
        return
    lists = area if areas is None else areas
    values_of_area = area is not None and any("=" in text for text in where or [])
    if lists is not None and not values_of_area:
        answer_sums(
            release_folder,
            lists,
            where or [],
            csv=csv,
            escape_formulas=escape_formulas,
            force=force,
            as_json=as_json,
        )
        return
    if csv is not None:
        raise RpexploreError("--csv goes with tables in areas; leave it out for a single answer.")
    with progress("Reading the release") as on_progress:
        results = load_any_results(release_folder)
        counts = results.own_counts
        questions, answers = [where or []], []
        if area is None and counts is not None and _names_a_count(counts, where or []):
            (name,) = where or []
            answers.append(counts.answer(name))
        elif area is not None:
            release, domain = tables_of_area(release_folder, area)
            example = "the values that count, such as age=18..24"
            texts = inputs.texts_by_attribute(domain, where or [], "A=VALUES", example)
            answers.append(release.answer(where=product_query(domain, texts)))
        else:
            _refuse_no_count(counts, where or [])
            asked = Questions(_tables_of(results))
            questions, conditions = inputs.questions(asked.domain, where or [])
            for texts in conditions:
                answer = asked.answer(product_query(asked.domain, texts), on_progress=on_progress)
                answers.append(answer)
    names = ("value", "standard_error", "lower_95", "upper_95", "basis")
    facts = [
        {"question": question, **{name: getattr(answer, name) for name in names}}
        for question, answer in zip(questions, answers, strict=True)
    ]
    if len(facts) == 1:
        say_result(as_json, facts[0], _answer_text(answers[0]))
        return
    texts = [
        f"{' '.join(question)}\n{_answer_text(answer)}"
        for question, answer in zip(questions, answers, strict=True)
    ]
    say_result(as_json, {"answers": facts}, "\n\n".join(texts))


def _answer_text(answer: "Answer") -> str:
    """The answer to a question, on three lines, and by what where a model gave it."""
    from rpexplore.common.text import rounded
    from rpexplore.results.synthetic.questions import ModelAnswer

    text = (
        f"Value            {answer.value:,.2f}\n"
        f"Standard error   {rounded(answer.standard_error, 4, zeros=True)}\n"
        f"95 % interval    {answer.lower_95:,.2f} to {answer.upper_95:,.2f}"
    )
    return f"{text}\n{answer.describe()}" if isinstance(answer, ModelAnswer) else text


def _names_a_count(counts: Any, where: Sequence[str]) -> bool:
    """Whether a question is the name of an own count."""
    return len(where) == 1 and where[0] in counts.queries.names


def _refuse_no_count(counts: Any, where: Sequence[str]) -> None:
    """Raise `RpexploreError` for a word that is neither an own count nor values of an attribute."""
    words = [text for text in where if "=" not in text]
    if counts is None or not words:
        return
    names = list(counts.queries.names)
    if words[0] in names:
        raise RpexploreError(f"The count {words[0]!r} is answered by itself; name it alone.")
    close = get_close_matches(words[0], names, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"the counts are {shown_few(names)}."
    raise RpexploreError(
        f"{words[0]!r} must be one of the release's own counts, or the values that count, such as "
        f"age=18..24; {advice}"
    )


def _tables_of(results: Any) -> Any:
    """The unbiased tables of results; where there are none, the error names what is there."""
    try:
        return results.unbiased_tables()
    except RpexploreError as error:
        remedies = []
        if results.area_levels:
            remedies.append(
                "give --area CODE for one area, --level LEVEL for all of a level, or --areas FILE "
                "with lists of areas to add up"
            )
        if (counts := results.own_counts) is not None:
            names = shown_few(list(counts.queries.names))
            remedies.append(f"name one of the counts: {names}")
        if not remedies:
            raise
        raise RpexploreError(f"{error} Or {'; or '.join(remedies)}.") from None


def combine(
    releases: options.Releases,
    out: options.Folder,
    noisy: options.Noisy = None,
    ledger: options.CombineLedger = None,
    escape_formulas: options.EscapeFormulas = False,
    as_json: options.AsJson = False,
) -> None:
    """Combine releases of the same records into one.

    The most accurate unbiased figures, each part with its like: tables, tables in areas, own
    counts. What was measured more than once is averaged by accuracy; tables are those of all
    releases, by single values. What only one release has is taken over; adaptive tables are left
    aside. Costs no privacy; what the releases spent adds up.
    """
    from rpexplore.common.numbers import exact_text
    from rpexplore.domain.domain import formulas_warning
    from rpexplore.privacy.conversions import rho_text
    from rpexplore.releases.atomic_folder import check_new
    from rpexplore.results.combination import combine, left_aside, load_unbiased, write_combined
    from rpexplore.results.results import load_any_results

    check_new(out)
    with progress("Reading the releases") as on_progress:
        parts = [load_any_results(folder) for folder in releases]
        marginals = []
        if noisy:
            marginals = inputs.noisy_from_options(load_unbiased(releases[0]).domain, noisy)
        on_progress("Combining them", 0.0)
        combined = combine(*parts, noisy=marginals, ledger=ledger)
        write_combined(combined, out, escape_formulas=escape_formulas, on_progress=on_progress)
    spent, tables = combined.spent, combined.part("tables")
    remarks = [*combined.taken_over, *filter(None, map(left_aside, parts))]
    facts = {
        "folder": str(out),
        "label": combined.label,
        "parts": [part.kind for part in combined.readers],
        "table_count": 0 if tables is None else len(tables.table_names),
        "rho": exact_text(spent.rho),
        "rho_is_known": spent.is_known,
        "unit": spent.unit,
        "sources": [source.to_json() for source in combined.sources],
        "taken_over": list(combined.taken_over),
        "left_aside": [text for text in map(left_aside, parts) if text],
        "warning": None if escape_formulas else formulas_warning(combined.domain),
    }
    is_one = combined.contents.startswith("1 ") and len(combined.readers) == 1
    text = (
        f"{combined.guarantee}\n\n"
        f"The {combined.contents} {'is' if is_one else 'are'} in {out}\n"
        f"Spent {'' if spent.is_known else 'at least '}{rho_text(spent.rho)} for {spent.unit}"
    )
    say_result(as_json, facts, "\n\n".join(filter(None, [text, *remarks, facts["warning"]])))


def postprocess(
    release: options.ReleaseFolder,
    out: options.Folder,
    nonnegative: options.Nonnegative = False,
    smooth: options.Smooth = False,
    round_: options.Round = False,
    round_to: options.RoundTo = None,
    gap: options.Gap = None,
    in_areas: area_options.InAreas = False,
    best_guesses: area_options.BestGuesses = False,
    known_totals: area_options.KnownTotals = None,
    escape_formulas: options.EscapeFormulas = False,
    as_json: options.AsJson = False,
) -> None:
    """Make smooth, nonnegative or whole tables of a release.

    The result is biased, and labelled so in every file; the unbiased answers stand beside, with
    their intervals. Its README.md says which of them to publish for which use. Costs no privacy.

    Of tables in areas: --nonnegative --round, counts that also add up over areas, or
    --best-guesses, such counts by a model of how areas differ from what they lie in, with errors;
    where tables without areas are released as well, these are processed, and areas with --in-areas.
    """
    from rpexplore.analysis.released_cells import (
        describe_farthest,
        describe_gains,
        describe_kept,
        farthest_group,
        median_kept,
    )
    from rpexplore.common.text import capitalised, describe_share, plural
    from rpexplore.domain.domain import formulas_warning
    from rpexplore.releases.atomic_folder import check_new
    from rpexplore.releases.finished_release import parts_beside
    from rpexplore.results.combination import load_unbiased
    from rpexplore.results.estimates.shrinkage import BY_SIZE
    from rpexplore.results.processed_folder import postprocess

    if nonnegative and smooth:
        raise RpexploreError(
            "Give one of --nonnegative and --smooth; smooth tables have no cell below 0 either."
        )
    if round_to is not None and round_to < 2:
        raise RpexploreError(f"--round-to must be 2 or more, got {round_to}; --round is for 1.")
    check_new(out)
    parts = parts_in(release)
    of_areas = in_areas or best_guesses or known_totals is not None
    if of_areas or ("areas" in parts and "tables" not in parts):
        write_whole_counts(
            release,
            out,
            known_totals,
            option="--best-guesses"
            if best_guesses
            else "--in-areas"
            if in_areas
            else "--known-totals",
            best_guesses=best_guesses,
            nonnegative=nonnegative,
            rounded=round_,
            others={
                "--smooth": smooth,
                "--gap": gap,
                "--round-to": round_to,
                "--escape-formulas": escape_formulas,
            },
            as_json=as_json,
        )
        return
    with progress("Reading the release") as on_progress:
        source = load_unbiased(release)
        tables = postprocess(
            source,
            out,
            method="smooth" if smooth else "nonnegative" if nonnegative else None,
            rounded=round_ if round_to is None else round_to,
            gap=gap,
            escape_formulas=escape_formulas,
            on_progress=on_progress,
        )
    manifest, count = tables.manifest, len(tables.table_names)
    facts = {key: manifest[key] for key in ("label", "method", "rounded", "gap", "rounds")}
    text = f"{capitalised(manifest['label'])}."
    if nonnegative:
        avoidable = describe_share(manifest["gap"])
        text += f"\nOf their squared distance to the noisy tables at most {avoidable} is avoidable."
    if smooth:
        kept, groups = tables.shrinkage, tables.shrinkage_by_group
        medians = median_kept(kept)
        facts["median_share_kept"] = {str(order): share for order, share in medians.items()}
        groups = groups.loc[groups["attribute"] != BY_SIZE, :]
        if medians:
            text += f"\n\n{describe_kept(kept)} {describe_gains(kept)}"
            text += f"\n\n{describe_farthest(groups)} shrinkage_by_group.csv has all groups."
            far = farthest_group(groups)  # its own count may be unknown, NaN
            facts["farthest_group"] = {
                name: None if fact != fact else fact for name, fact in far.items()
            }
            gains_nothing = kept.loc[kept["smoothing_gains"] == "no", "attributes"]
            facts["smoothing_gains_nothing"] = [list(names) for names in gains_nothing]
    text += f"\n\nThe {plural(count, 'table')} {'is' if count == 1 else 'are'} in {out}"
    warning = None if escape_formulas else formulas_warning(source.domain)
    aside = parts_beside(release, "tables")
    if "areas" in parts:
        aside += (
            " --nonnegative --round --in-areas makes whole counts of these, --best-guesses best "
            "guesses."
        )
    facts |= {"folder": str(out), "table_count": count, "left_aside": aside, "warning": warning}
    say_result(as_json, facts, "\n\n".join(filter(None, [text, aside, warning])))


def workbook(
    release: options.AnyResults,
    out: options.WorkbookOut,
    cv_limit: options.WorkbookCvLimit = CV_LIMIT,
    leave_empty: options.LeaveEmpty = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write tables as an Excel workbook.

    First the privacy label and a list of the tables, then a sheet a table, with standard errors,
    intervals, coefficients of variation (CV) and which cells are publishable. Costs no privacy.
    """
    from rpexplore.common.text import plural
    from rpexplore.results.publication import Publication, sampling_of
    from rpexplore.results.results import load_any_results
    from rpexplore.results.workbook import write_workbook

    if out.suffix.lower() != ".xlsx":
        raise RpexploreError(f"A workbook must end in .xlsx, got {out.name!r}.")
    refuse_existing(out, force)
    with progress("Reading the tables") as on_progress:
        results = load_any_results(release)
        publication = Publication(cv_limit, leave_empty, sampling_of(results))
        sheets = write_workbook(results, out, publication=publication, on_progress=on_progress)
    count = len({sheet.position for sheet in sheets})
    facts = {"workbook": str(out), "table_count": count, "sheets": [sheet.name for sheet in sheets]}
    say_result(
        as_json, facts, f"The {plural(count, 'table')} {'is' if count == 1 else 'are'} in {out}"
    )


# ---- What verbs do with releases of tables in areas, and with sums of areas: answer, postprocess.


# Each function imports what it needs itself, so that no verb waits for what it does not use.

_MOST_SUMS = 20  # rows shown as text


def parts_in(folder: Path) -> list[str]:
    """The kinds of parts of a release, or of combined ones; none of another folder of results.

    Raises `ReleaseError` if it is neither.
    """
    from rpexplore.releases.finished_release import FORMAT
    from rpexplore.releases.manifest import read_manifest
    from rpexplore.results.combination import KIND
    from rpexplore.results.results import load_any_results

    if read_manifest(folder).get("format") not in (FORMAT[0], KIND[0]):
        return []
    return [part.kind for part in load_any_results(folder).readers]


def load_areas(folder: Path, option: str) -> "TablesInAreas":
    """A release of tables in areas, which `option` goes with."""
    from rpexplore.releases.manifest import read_manifest
    from rpexplore.results.estimates.area_counts import KIND
    from rpexplore.results.results import load_any_results

    if read_manifest(folder).get("format") == KIND[0]:
        raise ReleaseError(
            f"{str(folder)!r} holds whole counts, which are biased and have no exact errors; name "
            "the release that they were made of."
        )
    if "areas" not in parts_in(folder):
        raise ReleaseError(
            f"{option} goes with a release of tables in areas, and {str(folder)!r} holds none; "
            f"leave {option} out, or name the folder of such a release."
        )
    return load_any_results(folder).area_tables()


def planned_sums(plan: "Plan | PartPlan", areas: Path) -> "pd.DataFrame":
    """How accurate each table of a plan is for lists of areas, the least accurate first."""
    from rpexplore.domain.named_areas import lists_of_areas

    part = plan.part("areas")
    if part is None:
        raise RpexploreError(
            f"--areas goes with a plan for areas, and this is {plan.kind_text}; leave it out."
        )
    return part.accuracy_of_sums(lists_of_areas(part.workload.tree, areas))


def planned_sum_table(rows: "pd.DataFrame", count: int | None) -> str:
    """The first rows of `planned_sums` as a text table (None: as many as usual)."""
    from rpexplore.common.text import describe_numbers
    from rpexplore.workload.table_text import title

    total, rows = len(rows), rows.head(_MOST_SUMS if count is None else count)
    errors = describe_numbers(rows["standard_error"].fillna(0))
    columns = {
        "list": rows["list"].tolist(),
        "table": [title(table) for table in rows["attributes"]],
        "areas": [f"{areas:,}" for areas in rows["areas"]],
        "standard error": [
            "" if missing else text
            for text, missing in zip(errors, rows["standard_error"].isna(), strict=True)
        ],
    }
    notes = {"note": rows["note"].tolist()} if any(rows["note"]) else {}
    more = total - len(rows)
    left_out = f"\n… and {more:,} more: --tables {total} shows all." if more else ""
    return text_table({**columns, **notes}, "<<>>" + "<" * len(notes)) + left_out


def tables_of_area(folder: Path, area: str) -> "tuple[AreaTables, Domain]":
    """What a release has on one area, by its codes, and the attributes of it."""
    from rpexplore.domain.named_areas import typed_area
    from rpexplore.planning.areas.area_sums import area_number
    from rpexplore.results.area_results import AreaResults

    results = AreaResults(load_areas(folder, "--area"))
    number = area_number(results.tree, typed_area(area))
    return results.of_area(number), results.plan.domain


def answer_sums(
    folder: Path,
    areas: Path | str,
    attributes: Sequence[str],
    *,
    csv: Path | None,
    escape_formulas: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Print a table of a release of areas, summed over lists of areas.

    areas: a file of lists, or the codes of one area
    """
    from rpexplore.cli.facts import row_facts
    from rpexplore.common.text import csv_of_frame
    from rpexplore.domain.named_areas import lists_of_areas, typed_area
    from rpexplore.results.area_results import sums_of_areas

    if csv is not None:
        refuse_existing(csv, force)
    option = "--area" if isinstance(areas, str) else "--areas"
    with progress("Reading the release"):
        release = load_areas(folder, option)
        names = release.plan.domain.names
        for attribute in attributes:
            if attribute not in names:
                raise RpexploreError(
                    f"With {option}, {attribute!r} must be an attribute of the plan, one of "
                    f"{', '.join(names)}; all values of these are answered."
                )
        if isinstance(areas, str):
            sums = sums_of_areas(release, typed_area(areas), *attributes)
        else:
            sums = sums_of_areas(release, lists_of_areas(release.tree, areas), *attributes)
        if csv is not None:
            write_new(csv, csv_of_frame(sums, escape_formulas=escape_formulas), force)
    facts = {"attributes": list(attributes), "sums": row_facts(sums), "csv": csv and str(csv)}
    say_result(as_json, facts, _first_answers(sums, csv))


def answer_on_level(
    folder: Path,
    level: str,
    within: str | None,
    where: Sequence[str],
    *,
    csv: Path | None,
    escape_formulas: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Print the answer of each area of a level to a query, which names values."""
    from rpexplore.cli import inputs
    from rpexplore.domain.values import product_query

    if csv is not None:
        refuse_existing(csv, force)
    with progress("Reading the release"):
        shown, domain = areas_side_by_side(folder, level, within)
        example = "the values that count, such as age=18..24"
        query = product_query(domain, inputs.texts_by_attribute(domain, where, "A=VALUES", example))
        answers = shown.answers(where=query)
    say_answers(
        {"question": list(where)},
        answers,
        csv=csv,
        escape_formulas=escape_formulas,
        force=force,
        as_json=as_json,
    )


def areas_side_by_side(folder: Path, level: str, within: str | None) -> "tuple[AreaTables, Domain]":
    """The tables of the areas of a level, or of those that lie in one, and their attributes."""
    from rpexplore.domain.named_areas import typed_area
    from rpexplore.planning.areas.area_sums import area_number
    from rpexplore.results.area_results import AreaResults

    results = AreaResults(load_areas(folder, "--level"))
    tree, domain = results.tree, results.plan.domain
    if level not in tree.levels:
        raise RpexploreError(
            f"There is no level {level!r}; the levels are {', '.join(tree.levels)}."
        )
    number = tree.levels.index(level)
    top = 0 if within is None else area_number(tree, typed_area(within))
    if int(tree.level_of[top]) > number:
        raise RpexploreError(
            f"The area {within!r} has no areas on the level {level!r}, which is above it."
        )
    areas, empty = results.within(top, number), tree.empty_on(number, top)
    return results.side_by_side(number, areas, empty), domain


def say_answers(
    facts: dict[str, Any],
    answers: "pd.DataFrame",
    *,
    csv: Path | None,
    escape_formulas: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Print the first rows of answers, and write all to a file if one is named."""
    from rpexplore.cli.facts import row_facts
    from rpexplore.common.text import csv_of_frame

    if csv is not None:
        write_new(csv, csv_of_frame(answers, escape_formulas=escape_formulas), force)
    facts |= {"answers": row_facts(answers), "csv": csv and str(csv)}
    say_result(as_json, facts, _first_answers(answers, csv))


def _first_answers(answers: "pd.DataFrame", csv: Path | None) -> str:
    """The first rows of answers as a text table, and where all are or how to get them."""
    first = answers.head(_MOST_SUMS)
    text = answers_table(first)
    if csv is not None:
        text += f"\n\nAll {len(answers):,} rows are in {csv}."
    elif len(answers) > len(first):
        text += f"\n… and {len(answers) - len(first):,} more rows: --csv FILE writes all."
    return text


def answer_shares(
    folder: Path,
    where: Sequence[str],
    per: Sequence[str],
    among: Sequence[str],
    *,
    area: str | None,
    level: str | None,
    within: str | None,
    csv: Path | None,
    escape_formulas: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Print what per cent a selection is of the records with each value of `per`."""
    import pandas as pd

    from rpexplore.cli import inputs
    from rpexplore.domain.result_schema import Schema
    from rpexplore.domain.values import product_query
    from rpexplore.results.results import load_any_results
    from rpexplore.results.shares import SHARES, share_of_counts, shares

    if csv is not None:
        refuse_existing(csv, force)
    with progress("Reading the release"):
        results = load_any_results(folder)
        counts = results.own_counts
        if area is None and level is None and counts is not None and _names_a_count(counts, where):
            if among or len(per) != 1 or not _names_a_count(counts, per):
                raise RpexploreError(
                    f"The count {where[0]!r} is a share of another own count; name that one by "
                    "--per, and nothing else."
                )
            share = share_of_counts(counts, where[0], per[0])
            columns = [one.name for one in SHARES]
            answers = Schema(SHARES).marked(pd.DataFrame([share], columns=columns))
        else:
            tables: Any
            if level is not None:
                tables, domain = areas_side_by_side(folder, level, within)
            elif area is not None:
                tables, domain = tables_of_area(folder, area)
            else:
                _refuse_no_count(counts, where)
                tables = _tables_of(results)
                domain = tables.domain
            example = "the values that count, such as age=18..24"
            counted, base = (
                product_query(domain, inputs.texts_by_attribute(domain, texts, name, example))
                for texts, name in ((where, "A=VALUES"), (among, "--among"))
            )
            if not counted:
                raise RpexploreError(
                    f"--per needs what is counted, {example}; name values of some attribute."
                )
            names = [name for name in per if name != "total" or name in domain.names]
            for name in names:
                if name not in domain.names:
                    raise RpexploreError(
                        f"--per {name!r} must be an attribute, one of {', '.join(domain.names)}, "
                        "or total."
                    )
            answers = shares(tables, counted, per=names, among=base)
    say_answers(
        {"question": list(where), "per": list(per), "among": list(among)},
        answers,
        csv=csv,
        escape_formulas=escape_formulas,
        force=force,
        as_json=as_json,
    )


def answers_table(rows: "pd.DataFrame") -> str:
    """Answers as a text table: what each is about, its value, standard error and interval."""
    from rpexplore.common.text import describe_numbers
    from rpexplore.domain.result_schema import Schema

    schema = Schema.of(rows)
    columns = {one.name: rows[one.name].astype(str).tolist() for one in schema.labels}
    unit = next(one.unit for one in schema.figures)
    is_known = ~rows[schema.name("value")].isna()
    per_cent = f" {unit}" if unit == "%" else ""
    errors = iter(describe_numbers(rows.loc[is_known, schema.name("error")]))
    columns["value"] = [
        f"{value:,.2f}{per_cent}" if known else "too few"
        for value, known in zip(rows[schema.name("value")], is_known, strict=True)
    ]
    columns["standard error"] = [next(errors) if known else "" for known in is_known]
    columns["95 % interval"] = [
        f"{low:,.2f} to {high:,.2f}" if known else ""
        for low, high, known in zip(
            rows[schema.name("lower")], rows[schema.name("upper")], is_known, strict=True
        )
    ]
    return text_table(columns, "<" * len(schema.labels) + ">>>")


def write_whole_counts(
    folder: Path,
    out: Path,
    totals: Path | None,
    *,
    option: str,
    best_guesses: bool,
    nonnegative: bool,
    rounded: bool,
    others: dict[str, Any],
    as_json: bool,
) -> None:
    """Write whole counts, or best guesses, of a release of areas: what there is for it.

    option: that asks for it. others: further options -> what they were given as, all of which are
    refused
    """
    from rpexplore.common.text import capitalised, plural
    from rpexplore.domain.named_areas import totals_of_areas
    from rpexplore.releases.finished_release import parts_beside
    from rpexplore.results.estimates.area_counts import area_guesses, whole_area_counts

    for other, value in others.items():
        if value not in (None, False):
            raise RpexploreError(
                f"{other} does not go with whole counts of tables in areas, which "
                "--nonnegative --round and --best-guesses make; leave it out"
                f"{' or leave --known-totals out' if totals is not None else ''}."
            )
    if not (best_guesses or (nonnegative and rounded)):
        raise RpexploreError(
            "Of a release of tables in areas counts are made that are whole and never negative at "
            "once; give --best-guesses, or --nonnegative --round."
        )
    with progress("Reading the release") as on_progress:
        release = load_areas(folder, option)
        known: dict[AreaName, int] = {}
        if totals is not None:
            known |= totals_of_areas(release.tree, totals)
        make = area_guesses if best_guesses else whole_area_counts
        counts = make(release, out, totals=known, on_progress=on_progress)
    manifest = counts.manifest
    tables = {tuple(entry["attributes"]) for entry in manifest["files"] if "attributes" in entry}
    text = f"{capitalised(manifest['label'])}."
    if known:
        text += (
            f"\nThe known totals of {plural(len(known), 'area')} are met; they are not protected."
        )
    text += f"\n\nThe {plural(len(tables), 'table')} {'is' if len(tables) == 1 else 'are'} in {out}"
    facts = {key: manifest[key] for key in ("label", "guarantee", "known_totals")}
    aside = parts_beside(folder, "areas")
    facts |= {"folder": str(out), "table_count": len(tables), "left_aside": aside}
    say_result(as_json, facts, "\n\n".join(filter(None, [text, aside])))
