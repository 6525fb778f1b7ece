"""What verbs do with releases of tables in areas, and with sums of areas: answer, postprocess."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpexplore.cli.console import progress, refuse_existing, say_result, text_table, write_new
from rpexplore.errors import ReleaseError, RpexploreError

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.domain.domain import Domain
    from rpexplore.planning.areas.area_sums import AreaName
    from rpexplore.planning.part_plan import PartPlan
    from rpexplore.planning.plan import Plan
    from rpexplore.postprocessing.areas.area_results import AreaTables
    from rpexplore.releases.areas.area_release import AreaRelease

# Each function imports what it needs itself, so that no verb waits for what it does not use.

_MOST_SUMS = 20  # rows shown as text


def parts_in(folder: Path) -> list[str]:
    """The kinds of parts that a release holds; none of another folder of results.

    Raises `ReleaseError` if it is neither.
    """
    from rpexplore.releases.finished_release import FORMAT, Release
    from rpexplore.releases.manifest import read_manifest

    if read_manifest(folder).get("format") != FORMAT[0]:
        return []
    return [part.kind for part in Release.load(folder).parts]


def load_areas(folder: Path, option: str) -> "AreaRelease":
    """A release of tables in areas, which `option` goes with."""
    from rpexplore.postprocessing.areas.area_counts import KIND
    from rpexplore.releases.areas.area_release import AreaRelease
    from rpexplore.releases.manifest import read_manifest

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
    return AreaRelease.load(folder)


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
    """The first rows of `planned_sums` as a text table (None: as many as usual).

    What is asked for in no or not all areas is empty.
    """
    from rpexplore.common.formatting import describe_numbers
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
    more = total - len(rows)
    left_out = f"\n… and {more:,} more: --tables {total} shows all." if more else ""
    return text_table(columns, "<<>>") + left_out


def tables_of_area(folder: Path, area: str) -> "tuple[AreaTables, Domain]":
    """What a release has on one area, by its codes, and the attributes of it."""
    from rpexplore.domain.named_areas import typed_area
    from rpexplore.planning.areas.area_sums import area_number
    from rpexplore.postprocessing.areas.area_results import AreaResults

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
    from rpexplore.common.csv_text import csv_of_frame
    from rpexplore.domain.named_areas import lists_of_areas, typed_area
    from rpexplore.postprocessing.areas.released_sums import sums_of_areas

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
    first = sums.head(_MOST_SUMS)
    text = answers_table(first)
    if len(sums) > len(first):
        text += f"\n… and {len(sums) - len(first):,} more rows: --csv FILE writes all."
    if csv is not None:
        text += f"\n\nAll {len(sums):,} rows are in {csv}."
    facts = {"attributes": list(attributes), "sums": row_facts(sums), "csv": csv and str(csv)}
    say_result(as_json, facts, text)


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
    from rpexplore.cli.facts import row_facts
    from rpexplore.common.csv_text import csv_of_frame
    from rpexplore.domain.named_areas import typed_area
    from rpexplore.domain.value_selection import product_query
    from rpexplore.planning.areas.area_sums import area_number
    from rpexplore.postprocessing.areas.area_results import AreaResults

    if csv is not None:
        refuse_existing(csv, force)
    with progress("Reading the release"):
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
        example = "the values that count, such as age=18..24"
        query = product_query(domain, inputs.texts_by_attribute(domain, where, "A=VALUES", example))
        answers = results.side_by_side(number, results.within(top, number)).answers(where=query)
        if csv is not None:
            write_new(csv, csv_of_frame(answers, escape_formulas=escape_formulas), force)
    first = answers.head(_MOST_SUMS)
    text = answers_table(first)
    if len(answers) > len(first):
        text += f"\n… and {len(answers) - len(first):,} more rows: --csv FILE writes all."
    facts = {"question": list(where), "answers": row_facts(answers), "csv": csv and str(csv)}
    say_result(as_json, facts, text)


def answers_table(rows: "pd.DataFrame") -> str:
    """Answers as a text table: what each is about, its value, standard error and interval."""
    from rpexplore.common.formatting import describe_numbers
    from rpexplore.domain.result_schema import Schema

    schema = Schema.of(rows)
    columns = {one.name: rows[one.name].astype(str).tolist() for one in schema.labels}
    columns["value"] = [f"{value:,.2f}" for value in rows[schema.name("value")]]
    columns["standard error"] = describe_numbers(rows[schema.name("error")])
    columns["95 % interval"] = [
        f"{low:,.2f} to {high:,.2f}"
        for low, high in zip(rows[schema.name("lower")], rows[schema.name("upper")], strict=True)
    ]
    return text_table(columns, "<" * len(schema.labels) + ">>>")


def write_whole_counts(
    folder: Path,
    out: Path,
    totals: Path | None,
    *,
    nonnegative: bool,
    rounded: bool,
    others: dict[str, Any],
    as_json: bool,
) -> None:
    """Write whole counts of a release of areas, the one processing that there is for it.

    others: further options -> what they were given as, all of which are refused
    """
    from rpexplore.common.formatting import capitalised, plural
    from rpexplore.domain.named_areas import totals_of_areas
    from rpexplore.postprocessing.areas.area_counts import whole_area_counts

    for option, value in others.items():
        if value not in (None, False):
            raise RpexploreError(
                f"{option} does not go with a release of tables in areas, of which whole counts "
                "are made; leave it out, and give --nonnegative --round."
            )
    if not (nonnegative and rounded):
        raise RpexploreError(
            "Of a release of tables in areas counts are made that are whole and never negative at "
            "once; give --nonnegative --round."
        )
    with progress("Reading the release") as on_progress:
        release = load_areas(folder, "--known-totals")
        known: dict[AreaName, int] = {}
        if totals is not None:
            known |= totals_of_areas(release.tree, totals)
        counts = whole_area_counts(release, out, totals=known, on_progress=on_progress)
    manifest = counts.manifest
    tables = {tuple(entry["attributes"]) for entry in manifest["files"] if "attributes" in entry}
    text = f"{capitalised(manifest['label'])}."
    if known:
        text += (
            f"\nThe known totals of {plural(len(known), 'area')} are met; they are not protected."
        )
    text += f"\n\nThe {plural(len(tables), 'table')} {'is' if len(tables) == 1 else 'are'} in {out}"
    facts = {key: manifest[key] for key in ("label", "guarantee", "known_totals")}
    say_result(as_json, {**facts, "folder": str(out), "table_count": len(tables)}, text)
