"""The verbs that work with a model of the tables: synthesize, simulate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rpexplore.cli import area_options, options
from rpexplore.cli.commands import Option
from rpexplore.cli.console import progress, say_result, text_table
from rpexplore.common.processes import Progress
from rpexplore.common.text import describe_share, joined
from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    from rpexplore.domain.expected_counts import ExpectedCounts
    from rpexplore.domain.smooth_rehearsal import SmoothRehearsal
    from rpexplore.planning.table_plan import TablePlan


# ---- The verb that makes synthetic records of a release.


RecordsFolder = Annotated[
    Path, Option("--out", metavar="FOLDER", help="A new folder for the records.")
]
Rows = Annotated[
    int | None,
    Option(
        "--rows",
        metavar="N",
        help="How many records (else as many as the release says: its total).",
    ),
]
Never = Annotated[
    list[str] | None,
    Option(
        "--never",
        metavar='"A=VALUES B=VALUES"',
        help="A combination of values that no record may have, beside those that the codebook "
        'states: "age=0..14 marital_status=Married". Repeat it for more.',
    ),
]
IgnoreCodebook = Annotated[
    bool,
    Option(
        "--ignore-codebook",
        help="Let records have the combinations that the codebook states to be impossible.",
    ),
]
Engine = Annotated[
    str,
    Option(
        "--engine",
        metavar="NAME",
        help="What draws the records: population (else), or graphical_model, which is exact where "
        'few pairs of attributes are measured (pip install "rpexplore[synthetic]").',
    ),
]

# It imports what it needs itself, so that no other verb waits for it.


def synthesize(
    release: options.ReleaseFolder,
    out: RecordsFolder,
    rows: Rows = None,
    never: Never = None,
    ignore_codebook: IgnoreCodebook = False,
    engine: Engine = "population",
    in_areas: area_options.InAreas = False,
    escape_formulas: options.EscapeFormulas = False,
    as_json: options.AsJson = False,
) -> None:
    """Make synthetic records from a release.

    No row is a person: records are drawn from a model of the released tables, and compared with
    these (of an adaptive release with what it measured) in the same folder.
    Biased, and labelled so. Costs no privacy.

    Where an attribute is in tables at several levels: the records of nonnegative whole counts of
    these tables.

    From tables in areas, or best guesses that were made of them: one record for each person in
    every lowest area, as Parquet. Counted again, they have every count of the best guesses.
    """
    from rpexplore.domain.domain import formulas_warning
    from rpexplore.releases.atomic_folder import check_new
    from rpexplore.releases.finished_release import parts_beside
    from rpexplore.results.combination import load_measured
    from rpexplore.results.synthetic.records_folder import synthesize

    check_new(out)
    if in_areas or _is_of_areas(release):
        others = {"--rows": rows, "--never": never, "--ignore-codebook": ignore_codebook}
        others |= {"--escape-formulas": escape_formulas, "--engine": engine != "population"}
        _synthesize_areas(release, out, others, as_json=as_json)
        return
    with progress("Reading the release") as on_progress:
        source = load_measured(release)
        records = synthesize(
            source,
            out,
            rows=rows,
            never=never or (),
            ignore_codebook=ignore_codebook,
            engine=engine,
            escape_formulas=escape_formulas,
            on_progress=on_progress,
        )
    facts = {
        "folder": str(out),
        "label": records.label,
        "rows": records.n_records,
        "engine": records.manifest["engine"],
        "never": records.manifest["never"],
        "left_out": records.manifest.get("left_out", []),
        "excluded": records.manifest["excluded"],
        "misfit": records.manifest["misfit"],
        "tables_to_use_instead": records.tables_to_use,
        "left_aside": parts_beside(release, "tables", "rounds"),
        "warning": None if escape_formulas else formulas_warning(source.domain),
    }
    where = f"The records, their label and their comparison with the release are in {out}"
    text = [records.summary, where, facts["left_aside"], facts["warning"]]
    say_result(as_json, facts, "\n\n".join(filter(None, text)))


def _is_of_areas(folder: Path) -> bool:
    """Whether a folder has counts of areas, and no tables without areas."""
    from rpexplore.cli.answers import parts_in
    from rpexplore.releases.manifest import read_manifest
    from rpexplore.results.estimates.area_counts import KIND

    if read_manifest(folder).get("format") == KIND[0]:
        return True
    parts = parts_in(folder)
    return "areas" in parts and not {"tables", "rounds"} & set(parts)


def _synthesize_areas(folder: Path, out: Path, others: dict[str, object], *, as_json: bool) -> None:
    """Make records of areas; others: options that they do not have, as they were given."""
    from rpexplore.results.results import load_area_results
    from rpexplore.results.synthetic.area_records import synthesize_areas

    for option, value in others.items():
        if value:
            raise RpexploreError(
                f"{option} does not go with records of areas, which are as many as the areas have "
                "people; leave it out."
            )
    with progress("Reading the counts") as on_progress:
        source = load_area_results(folder)
        records = synthesize_areas(source, out, on_progress=on_progress)
    facts = {
        "folder": str(out),
        "label": records.manifest["label"],
        "rows": records.n_records,
        "attributes": records.manifest["attributes"],
    }
    text = (
        f"{records.n_records:,} synthetic records; no row is a person. Counted again, they have "
        f"every whole count of the best guesses.\n\nThe records and their label are in {out}"
    )
    say_result(as_json, facts, text)


# ---- The verb that simulates the smooth tables of a plan.


# It imports what it needs itself, so that no other verb waits for it.


def simulate(
    plan_file: options.PlanFile,
    expected_count: options.ExpectedCount = None,
    expected: options.ExpectedFile = None,
    record_noun: options.RecordNoun = "records",
    as_json: options.AsJson = False,
) -> None:
    """Simulate smooth tables of a plan on made-up records.

    How near unbiased, nonnegative and smooth tables would come, by
    number of attributes. Records are made up from expected counts and measured with the plan's
    noise; no real one is read, and nothing is spent. An adaptive plan is simulated beside smooth
    tables of a fixed plan of the same budget.
    """
    from rpexplore.analysis.hidden_deviations import could_hide, describe_could_hide
    from rpexplore.cli.facts import row_facts
    from rpexplore.cli.plan import adaptive_rehearsal, rehearsed_adaptively
    from rpexplore.cli.publishable import expected_from_options
    from rpexplore.domain.readings import READINGS
    from rpexplore.planning.part_plan import TITLES
    from rpexplore.planning.plan import load_plan

    with progress("Reading the plan") as on_progress:
        loaded = load_plan(plan_file)
        tables, rounds = loaded.part("tables"), loaded.part("rounds")
        kind = "rounds" if tables is None else "tables"
        others = [TITLES[part.kind].lower() for part in loaded.parts if part.kind != kind]
        aside = f"\n\nOnly these tables are simulated, not {joined(others)}." if others else ""
        if tables is None and rounds is not None:
            wanted = _needed(expected_from_options(loaded.domain, expected_count, expected, None))
            adaptive = rehearsed_adaptively(rounds, wanted, on_progress)
            facts, text = adaptive_rehearsal(adaptive, record_noun)
            say_result(as_json, facts, text + aside)
            return
        if tables is None:
            raise RpexploreError(
                f"{plan_file.name} is {loaded.kind_text}, and smooth tables are those of tables "
                "without areas; give a plan that has some, or see with `rpexplore show` what this "
                "one promises."
            )
        wanted = expected_from_options(loaded.domain, expected_count, expected, None)
        rehearsal = rehearsed(tables, wanted, on_progress)
        hidden = could_hide(tables)
    frame = rehearsal.frame.dropna(axis="columns")
    shown = [reading for reading in READINGS if reading in frame]
    table = text_table(
        {
            "attributes": [f"{order}" for order in frame["order"]],
            "tables": [f"{count:,}" for count in frame["tables"]],
            **{name: [describe_share(share) for share in frame[name]] for name in shown},
        }
    )
    sentence = rehearsal.describe(record_noun)
    facts = {
        "records": rehearsal.n_records,
        "expected_counts": rehearsal.expected.text,
        "errors": row_facts(frame),
        "could_hide": row_facts(hidden),
        "caution": rehearsal.caution,
    }
    texts = [table, sentence, describe_could_hide(hidden), f"{rehearsal.caution}{aside}"]
    say_result(as_json, facts, "\n\n".join(filter(None, texts)))


def rehearsed(
    plan: "TablePlan", wanted: "tuple[ExpectedCounts, float] | None", on_progress: "Progress"
) -> "SmoothRehearsal":
    """The rehearsal of a plan with the expected counts of options; they may not be missing."""
    from rpexplore.results.rehearsal import rehearse_smooth_tables

    return rehearse_smooth_tables(plan, _needed(wanted), on_progress=on_progress)


def _needed(wanted: "tuple[ExpectedCounts, float] | None") -> "ExpectedCounts":
    """The expected counts of options; they may not be missing."""
    if wanted is None:
        raise RpexploreError(
            "Made-up records need expected counts; give --expected-count N or --expected FILE."
        )
    return wanted[0]
