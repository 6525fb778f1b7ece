"""The verbs that make new results of releases, at no privacy cost, for tables and for areas."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpexplore.cli import area_options, inputs, options
from rpexplore.cli.answers import load_areas, parts_in
from rpexplore.cli.commands import Ratio
from rpexplore.cli.console import progress, refuse_existing, say_result
from rpexplore.common.files import file_bytes
from rpexplore.common.numbers import exact_text
from rpexplore.common.text import capitalised, describe_share, plural
from rpexplore.domain.domain import formulas_warning
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.errors import ReleaseError, RpexploreError

if TYPE_CHECKING:
    from rpexplore.planning.areas.area_sums import AreaName
    from rpexplore.releases.table_release import TableRelease
    from rpexplore.results.known_release import KnownRelease
    from rpexplore.results.unbiased import Estimates

# Each verb imports what it needs itself, so that none waits for what it does not use.

_CV_LIMIT = Ratio(CV_LIMIT)


def combine(
    releases: options.Releases,
    out: options.Folder,
    noisy: options.Noisy = None,
    ledger: options.CombineLedger = None,
    escape_formulas: options.EscapeFormulas = False,
    file_per_table: options.FilePerTable = False,
    as_json: options.AsJson = False,
) -> None:
    """Combine releases of the same records into one.

    The most accurate unbiased figures, each part with its like: tables, tables in areas, own
    counts. What was measured more than once is averaged by accuracy; tables are those of all
    releases, by single values. What only one release has is taken over; adaptive tables are left
    aside. Costs no privacy; what the releases spent adds up.
    """
    from rpexplore.privacy.conversions import rho_text
    from rpexplore.releases.atomic_folder import check_new
    from rpexplore.results.combination import (
        ASSUMED,
        combine,
        left_aside,
        load_unbiased,
        write_combined,
    )
    from rpexplore.results.results import load_any_results

    check_new(out)
    with progress("Reading the releases") as on_progress:
        parts = [load_any_results(folder) for folder in releases]
        marginals = []
        if noisy:
            marginals = inputs.noisy_from_options(load_unbiased(releases[0]).domain, noisy)
        on_progress("Combining them", 0.0)
        combined = combine(*parts, noisy=marginals, ledger=ledger)
        write_combined(
            combined,
            out,
            escape_formulas=escape_formulas,
            file_per_table=file_per_table,
            on_progress=on_progress,
        )
    spent, tables = combined.spent, combined.part("tables")
    assumed = [ASSUMED] if len(combined.sources) > 1 else []
    remarks = [*assumed, *combined.taken_over, *filter(None, map(left_aside, parts))]
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
    database: area_options.Cluster = None,
    escape_formulas: options.EscapeFormulas = False,
    file_per_table: options.FilePerTable = False,
    as_json: options.AsJson = False,
) -> None:
    """Make smooth, nonnegative or whole tables of a release.

    The result is biased, and labelled so in every file; the unbiased answers stand beside, with
    their intervals. Its README.md says which of them to publish for which use. Costs no privacy.

    All tables meet the publicly known totals of --known-totals, which are not protected. Alone it
    makes unbiased tables, as combine does, from which all else can be made.

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
    from rpexplore.releases.atomic_folder import check_new
    from rpexplore.releases.finished_release import parts_beside
    from rpexplore.results.combination import load_unbiased, write_combined
    from rpexplore.results.estimates.shrinkage import BY_SIZE
    from rpexplore.results.known_totals import known_sentence
    from rpexplore.results.processed_folder import postprocess
    from rpexplore.results.unbiased import Estimates

    if nonnegative and smooth:
        raise RpexploreError(
            "Give one of --nonnegative and --smooth; smooth tables have no cell below 0 either."
        )
    if round_to is not None and round_to < 2:
        raise RpexploreError(f"--round-to must be 2 or more, got {round_to}; --round is for 1.")
    if database is not None and not best_guesses:
        raise RpexploreError("--database NAME goes with --best-guesses; leave it out.")
    check_new(out)
    parts = parts_in(release)
    if in_areas or best_guesses or ("areas" in parts and "tables" not in parts):
        write_whole_counts(
            release,
            out,
            known_totals,
            option="--best-guesses" if best_guesses else "--in-areas",
            best_guesses=best_guesses,
            nonnegative=nonnegative,
            base=round_to or (1 if round_ else None),
            database=database,
            others={
                "--smooth": smooth,
                "--gap": gap,
                "--escape-formulas": escape_formulas,
                "--file-per-table": file_per_table,
            },
            as_json=as_json,
        )
        return
    with progress("Reading the release") as on_progress:
        source, doubt = load_unbiased(release), ""
        if known_totals is not None:
            source, doubt = _with_known_totals(source, known_totals)
            others = nonnegative or smooth or round_ or round_to is not None or gap is not None
            if not others and isinstance(source, Estimates):
                write_combined(
                    source,
                    out,
                    escape_formulas=escape_formulas,
                    file_per_table=file_per_table,
                    on_progress=on_progress,
                )
                _say_known_totals(release, out, source, doubt, as_json=as_json)
                return
        tables = postprocess(
            source,
            out,
            method="smooth" if smooth else "nonnegative" if nonnegative else None,
            rounded=round_ if round_to is None else round_to,
            gap=gap,
            escape_formulas=escape_formulas,
            file_per_table=file_per_table,
            on_progress=on_progress,
        )
    manifest, count = tables.manifest, len(tables.table_names)
    facts = {key: manifest[key] for key in ("label", "method", "rounded", "gap", "rounds")}
    text = f"{capitalised(manifest['label'])}."
    if tables.known_tables:
        text += f"\n{known_sentence(tables.known_tables)}"
        facts["known_totals"] = tables.known_tables
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
            gains_nothing = kept.loc[kept["smoothing_gains"] == "no", "attributes"]
            facts["smoothing_gains_nothing"] = [list(names) for names in gains_nothing]
        if len(groups):  # none where the attributes measured are in tables of sums alone
            text += f"\n\n{describe_farthest(groups)} shrinkage_by_group.csv has all groups."
            far = farthest_group(groups)  # its own count may be unknown, NaN
            facts["farthest_group"] = {
                name: None if fact != fact else fact for name, fact in far.items()
            }
    text += f"\n\nThe {plural(count, 'table')} {'is' if count == 1 else 'are'} in {out}"
    warning = None if escape_formulas else formulas_warning(source.domain)
    aside = parts_beside(release, "tables")
    if "areas" in parts:
        aside += (
            " --nonnegative --round --in-areas makes whole counts of these, --best-guesses best "
            "guesses."
        )
    facts |= {"folder": str(out), "table_count": count, "left_aside": aside, "warning": warning}
    facts |= {"doubt": doubt} if doubt else {}
    say_result(as_json, facts, "\n\n".join(filter(None, [text, doubt, aside, warning])))


def workbook(
    release: options.AnyResults,
    out: options.WorkbookOut,
    cv_limit: options.WorkbookCvLimit = _CV_LIMIT,
    leave_empty: options.LeaveEmpty = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write tables as an Excel workbook.

    First the privacy label and a list of the tables, then a sheet a table, with standard errors,
    intervals, coefficients of variation (CV) and which cells are publishable. Costs no privacy.
    """
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


def _with_known_totals(
    source: "TableRelease | Estimates", path: Path
) -> "tuple[Estimates | KnownRelease, str]":
    """What was measured with the totals of a file; a sentence where noise does not explain them."""
    from rpexplore.results.known_totals import (
        far_from_measured,
        known_totals_from_csv,
        with_known_totals,
    )

    content = file_bytes(path, f"The file of known totals {str(path)!r}", ReleaseError)
    known = with_known_totals(source, known_totals_from_csv(source, path, content))
    return known, far_from_measured(source, known)


def _say_known_totals(
    release: Path, out: Path, tables: "Estimates", doubt: str, *, as_json: bool
) -> None:
    """Say what was written where known totals alone are met."""
    from rpexplore.releases.finished_release import parts_beside
    from rpexplore.results.known_totals import known_sentence

    is_one = len(tables.table_names) == 1
    text = (
        f"{capitalised(tables.label)}.\n{known_sentence(tables.known_tables)}\n\n"
        f"The {tables.contents} {'is' if is_one else 'are'} in {out}"
    )
    aside = parts_beside(release, "tables")
    facts = {
        "folder": str(out),
        "label": tables.label,
        "known_totals": [list(names) for names in tables.known_tables],
        "table_count": len(tables.table_names),
        "left_aside": aside,
        **({"doubt": doubt} if doubt else {}),
    }
    say_result(as_json, facts, "\n\n".join(filter(None, [text, doubt, aside])))


def write_whole_counts(
    folder: Path,
    out: Path,
    totals: Path | None,
    *,
    option: str,
    best_guesses: bool,
    nonnegative: bool,
    base: int | None,
    database: str | None,
    others: dict[str, Any],
    as_json: bool,
) -> None:
    """Write whole counts, or best guesses, of a release of areas: what there is for it.

    option: that asks for it. base: whose multiples counts are; None where nothing asks for whole
    numbers. database: the name of a connection to a cluster that makes best guesses. others:
    further options -> what they were given as, all of which are refused
    """
    from rpexplore.data.engines.connections import connection_named
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
    if not (best_guesses or (nonnegative and base)):
        raise RpexploreError(
            "Of a release of tables in areas counts are made that are whole and never negative at "
            "once; give --best-guesses, or --nonnegative --round (or --round-to N)."
        )
    if best_guesses and base not in (None, 1):
        raise RpexploreError(
            "Best guesses have errors by a model of single counts, so they are not rounded to "
            f"multiples of {base}; give --nonnegative --round-to {base} without --best-guesses."
        )
    cluster = None if database is None else connection_named(database)
    with progress("Reading the release") as on_progress:
        release = load_areas(folder, option)
        known: dict[AreaName, int] = {}
        if totals is not None:
            known |= totals_of_areas(release.tree, totals)
        if best_guesses:
            counts = area_guesses(
                release, out, totals=known, cluster=cluster, on_progress=on_progress
            )
        else:
            counts = whole_area_counts(
                release, out, totals=known, base=base or 1, on_progress=on_progress
            )
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
