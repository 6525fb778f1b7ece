"""The verb that makes synthetic records of a release."""

from pathlib import Path
from typing import Annotated

from rpexplore.cli import options
from rpexplore.cli.commands import Option
from rpexplore.cli.console import progress, say_result

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
    escape_formulas: options.EscapeFormulas = False,
    as_json: options.AsJson = False,
) -> None:
    """Make synthetic records from a release.

    No row is a person: records are drawn from a model of the released tables, and compared with
    these (of an adaptive release with what it measured) in the same folder.
    Biased, and labelled so. Costs no privacy.
    """
    from rpexplore.domain.provenance import formulas_warning
    from rpexplore.postprocessing.combination_folder import load_measured
    from rpexplore.postprocessing.synthetic.records_folder import synthesize
    from rpexplore.releases.atomic_folder import check_new

    check_new(out)
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
        "warning": None if escape_formulas else formulas_warning(source.domain),
    }
    where = f"The records, their label and their comparison with the release are in {out}"
    say_result(
        as_json, facts, "\n\n".join(filter(None, [records.summary, where, facts["warning"]]))
    )
