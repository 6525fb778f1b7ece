"""The verbs that work on releases and cost no privacy."""

from collections.abc import Sequence
from typing import Any

from rpexplore.cli import area_options, inputs, options
from rpexplore.cli.console import progress, refuse_existing, say_result
from rpexplore.common.exact_numbers import shown_few
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.errors import RpexploreError

# Each verb imports what it needs itself, so that none waits for what it does not use.


def answer(
    release_folder: options.ReleaseFolder,
    where: options.Where = None,
    areas: area_options.ListsOfAreas = None,
    area: area_options.OneArea = None,
    level: area_options.AnswerLevel = None,
    within: area_options.AnswerWithin = None,
    csv: area_options.SumsOut = None,
    escape_formulas: options.EscapeFormulas = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Answer a query from a release, with its margin.

    Say which values count: age=18..24 sex=Female counts those who are both. Attributes that are not
    named are summed over; some table of the release must have those that are. The standard error is
    exact, with all covariances of what is added up. Costs no privacy.

    From a release of tables in areas: with --areas sums over lists of areas, of the table of the
    attributes that are named (sex age), or totals. With --area the same of one area, or the query
    about it that names values (sex=Female); with --level the query about each area of a level. A
    count of your own is answered by its name.
    """
    from rpexplore.cli.area_releases import answer_on_level, answer_sums, tables_of_area
    from rpexplore.common.formatting import rounded
    from rpexplore.domain.value_selection import product_query
    from rpexplore.postprocessing.results import load_any_results

    if sum(option is not None for option in (area, areas, level)) > 1:
        raise RpexploreError(
            "Give --area CODE for one area, --areas FILE for lists of them, or --level LEVEL for "
            "all of a level: one of these."
        )
    if within is not None and level is None:
        raise RpexploreError("--within goes with --level; for the area itself give --area CODE.")
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
    with progress("Reading the release"):
        results = load_any_results(release_folder)
        counts = results.own_counts
        if area is None and counts is not None and _names_a_count(counts, where or []):
            (name,) = where or []
            result = counts.answer(name)
        else:
            if area is not None:
                release, domain = tables_of_area(release_folder, area)
            else:
                release = _tables_of(results)
                domain = release.domain
            example = "the values that count, such as age=18..24"
            texts = inputs.texts_by_attribute(domain, where or [], "A=VALUES", example)
            result = release.answer(where=product_query(domain, texts))
    names = ("value", "standard_error", "lower_95", "upper_95")
    facts = {name: getattr(result, name) for name in names}
    text = (
        f"Value            {result.value:,.2f}\n"
        f"Standard error   {rounded(result.standard_error, 4, zeros=True)}\n"
        f"95 % interval    {result.lower_95:,.2f} to {result.upper_95:,.2f}"
    )
    say_result(as_json, {"question": where or [], **facts}, text)


def _names_a_count(counts: Any, where: Sequence[str]) -> bool:
    """Whether a question is the name of an own count."""
    return len(where) == 1 and where[0] in counts.plan.queries.names


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
            names = shown_few(list(counts.plan.queries.names))
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

    The most accurate unbiased tables: what was measured more than once is averaged by accuracy; the
    tables are those of all releases, by single values. Costs no privacy; what the releases spent
    adds up.
    """
    from rpexplore.common.exact_numbers import exact_text
    from rpexplore.common.formatting import plural
    from rpexplore.domain.provenance import formulas_warning
    from rpexplore.postprocessing.combination import combine
    from rpexplore.postprocessing.combination_folder import load_unbiased, write_combined
    from rpexplore.privacy.conversions import rho_text
    from rpexplore.releases.atomic_folder import check_new

    check_new(out)
    with progress("Reading the releases") as on_progress:
        parts = [load_unbiased(folder) for folder in releases]
        marginals = inputs.noisy_from_options(parts[0].domain, noisy or [])
        on_progress("Combining them", 0.0)
        combined = combine(*parts, noisy=marginals, ledger=ledger)
        write_combined(combined, out, escape_formulas=escape_formulas, on_progress=on_progress)
    spent, count = combined.spent, len(combined.tables)
    facts = {
        "folder": str(out),
        "label": combined.label,
        "table_count": count,
        "rho": exact_text(spent.rho),
        "rho_is_known": spent.is_known,
        "unit": spent.unit,
        "sources": [source.to_json() for source in combined.sources],
        "warning": None if escape_formulas else formulas_warning(combined.domain),
    }
    text = (
        f"{combined.guarantee}\n\n"
        f"The {plural(count, 'noisy table')} {'is' if count == 1 else 'are'} in {out}\n"
        f"Spent {'' if spent.is_known else 'at least '}{rho_text(spent.rho)} for {spent.unit}"
    )
    say_result(as_json, facts, "\n\n".join(filter(None, [text, facts["warning"]])))


def postprocess(
    release: options.ReleaseFolder,
    out: options.Folder,
    nonnegative: options.Nonnegative = False,
    smooth: options.Smooth = False,
    round_: options.Round = False,
    gap: options.Gap = None,
    known_totals: area_options.KnownTotals = None,
    escape_formulas: options.EscapeFormulas = False,
    as_json: options.AsJson = False,
) -> None:
    """Make smooth, nonnegative or whole tables of a release.

    The result is biased, and labelled so in every file; the unbiased answers stand beside, with
    their intervals. Its README.md says which of them to publish for which use. Costs no privacy.

    Of tables in areas: --nonnegative --round, counts that also add up over areas; where tables
    without areas are released as well, these are processed, and areas with --known-totals.
    """
    from rpexplore.analysis.results.shrinkage import (
        describe_farthest,
        describe_gains,
        describe_kept,
        farthest_group,
        median_kept,
    )
    from rpexplore.cli.area_releases import parts_in, write_whole_counts
    from rpexplore.common.formatting import capitalised, describe_share, plural
    from rpexplore.domain.provenance import formulas_warning
    from rpexplore.postprocessing.combination_folder import load_unbiased
    from rpexplore.postprocessing.group_distances import BY_SIZE
    from rpexplore.postprocessing.processed_folder import postprocess
    from rpexplore.releases.atomic_folder import check_new

    if nonnegative and smooth:
        raise RpexploreError(
            "Give one of --nonnegative and --smooth; smooth tables have no cell below 0 either."
        )
    check_new(out)
    parts = parts_in(release)
    if known_totals is not None or ("areas" in parts and "tables" not in parts):
        write_whole_counts(
            release,
            out,
            known_totals,
            nonnegative=nonnegative,
            rounded=round_,
            others={"--smooth": smooth, "--gap": gap, "--escape-formulas": escape_formulas},
            as_json=as_json,
        )
        return
    with progress("Reading the release") as on_progress:
        source = load_unbiased(release)
        tables = postprocess(
            source,
            out,
            method="smooth" if smooth else "nonnegative" if nonnegative else None,
            rounded=round_,
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
    facts |= {"folder": str(out), "table_count": count, "warning": warning}
    say_result(as_json, facts, "\n\n".join(filter(None, [text, warning])))


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
    from rpexplore.common.formatting import plural
    from rpexplore.postprocessing.publication import Publication
    from rpexplore.postprocessing.results import load_any_results
    from rpexplore.postprocessing.workbook import write_workbook

    if out.suffix.lower() != ".xlsx":
        raise RpexploreError(f"A workbook must end in .xlsx, got {out.name!r}.")
    publication = Publication(cv_limit, leave_empty)
    refuse_existing(out, force)
    with progress("Reading the tables") as on_progress:
        results = load_any_results(release)
        sheets = write_workbook(results, out, publication=publication, on_progress=on_progress)
    count = len({sheet.position for sheet in sheets})
    facts = {"workbook": str(out), "table_count": count, "sheets": [sheet.name for sheet in sheets]}
    say_result(
        as_json, facts, f"The {plural(count, 'table')} {'is' if count == 1 else 'are'} in {out}"
    )
