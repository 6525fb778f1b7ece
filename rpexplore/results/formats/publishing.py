"""The formats that finished tables can be exported to, and the folder that is written.

    tables/NNNN_age_sex.csv   each table, one row a cell, under names that all formats take
    README.md                 what is promised, and what the columns are
    ...                       what the formats add: descriptions, or files of their own

A format is a module in `writers`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from rpexplore.common.file_kinds import zip_of
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.template_text import text_from_template
from rpexplore.common.text import FORMULAS_ESCAPED, joined, markdown_text
from rpexplore.domain.domain import formulas_warning
from rpexplore.errors import ReleaseError
from rpexplore.releases.atomic_folder import check_room, new_folder
from rpexplore.releases.table_cells import BYTES_PER_CELL
from rpexplore.results.formats import writers
from rpexplore.results.formats.amount_texts import clamping_sentences
from rpexplore.results.formats.export import Export, Format
from rpexplore.results.formats.imprint import Imprint
from rpexplore.results.formats.languages import ENGLISH, Language
from rpexplore.results.formats.writers import DEFAULT

README = "README.md"
_NO_IMPRINT = Imprint()


@dataclass(frozen=True)
class Published:
    """An export that was written.

    files    within its folder
    warning  of texts from records that spreadsheets take for formulas; None if there are none
    """

    folder: Path
    files: tuple[str, ...]
    warning: str | None


FORMATS: Mapping[str, Format] = {
    name: import_module(f"{writers.__name__}.{name}").FORMAT for name in writers.NAMES
}


def publish(
    release: str | Path,
    output: str | Path,
    *,
    formats: Sequence[str] = (DEFAULT,),
    imprint: Imprint = _NO_IMPRINT,
    shares: str = "",
    language: str = "en",
    fewer_than: int = 0,
    escape_formulas: bool = False,
    on_progress: Progress = no_progress,
) -> Published:
    """Export finished tables into the folder `output`, which must not exist yet.

    Complete or not at all. Spends nothing; the release stays as it is.

    Args:
        release: The folder of a release of any kind, or of tables that were made of one.
        formats: Keys of `FORMATS`, any number of them.
        imprint: Title, publisher and licence, for the formats that have fields for them.
        shares: Whether figures have shares in per cent beside them, or crosstabs show shares: of
            the total of their "row" or "column" in the crosstab of the table, or of the "total".
        language: Of all texts but those of the codebook: "en", "de", "fr" or "es".
        fewer_than: Counts below this number are printed as "fewer than …", with empty figures in
            files of data: a way of presentation, which protects nobody. 0 for none.
        escape_formulas: Whether no text in CSV files begins as formulas of spreadsheets do; codes
            of SDMX, in which no apostrophe may be, have an underscore in front then.

    Returns:
        What was written.

    Raises:
        ReleaseError: If the folder holds no tables, or a file of it was changed; if there is no
            such format, or a format cannot hold the tables, or is not in the language; if there are
            no counts of records to print in words, or shares would tell them; if `output` cannot be
            written.
    """
    chosen = list(dict.fromkeys(formats))
    unknown = [name for name in chosen if name not in FORMATS]
    if unknown or not chosen:
        raise ReleaseError(
            f"There is no format {unknown[0] if unknown else ''!r}; choose "
            f"{joined(list(FORMATS), ' or ')}."
        )
    translated = [name for name, one in FORMATS.items() if one.said_in]
    in_english = [name for name in chosen if name not in translated]
    said = Language(language)
    if in_english and not said.is_english:
        raise ReleaseError(
            f"The format {in_english[0]!r} is in English only, got the language {language!r}; "
            f"choose {joined(translated, ' or ')}, or leave the language out."
        )
    output = Path(output)
    export = Export(
        Path(release),
        imprint,
        escape_formulas,
        shares,
        with_status="csvw" in chosen,
        language=said,
        fewer_than=fewer_than,
    )
    with_copies = not all(FORMATS[name].has_files_of_its_own for name in chosen)
    n_cells = sum(item.n_rows for item in export.results.items)
    check_room(BYTES_PER_CELL * n_cells * len(chosen), output)
    try:
        with new_folder(output) as folder:
            export.read_tables(folder if with_copies else None, on_progress)
            for name in chosen:
                on_progress(f"Writing {FORMATS[name].title}", 0.99)
                FORMATS[name].write(export, folder)
            if said.is_english:
                _write_readme(export, folder, chosen, with_copies=with_copies)
            else:
                _write_translated_readme(export, folder, chosen)
            paths = (path for path in folder.rglob("*") if path.is_file())
            files = sorted(path.relative_to(folder).as_posix() for path in paths)
    except OSError as error:
        raise ReleaseError(
            f"The tables could not be written to {str(output)!r} ({error.strerror or error}) and "
            "nothing of them was left; make room, or choose another folder."
        ) from None
    on_progress("Finished", 1.0)
    domain = export.results.domain  # processed tables have none
    warning = None if domain is None or escape_formulas else formulas_warning(domain)
    return Published(output, tuple(files), warning)


def published_zip(
    release: Path,
    formats: Sequence[str],
    imprint: Imprint = _NO_IMPRINT,
    shares: str = "",
    language: str = ENGLISH.code,
    fewer_than: int = 0,
) -> bytes:
    """The folder that `publish` writes, as a zip file, for a download."""
    with TemporaryDirectory(prefix="rpexplore-") as temporary:
        folder = Path(temporary) / "tables"
        published = publish(
            release,
            folder,
            formats=formats,
            imprint=imprint,
            shares=shares,
            language=language,
            fewer_than=fewer_than,
        )
        return zip_of({name: (folder / name).read_bytes() for name in published.files})


def _write_translated_readme(export: Export, folder: Path, formats: Sequence[str]) -> None:
    """What is promised and what the files are; what figures are, these files say themselves."""
    files = [f"- {name}: {export.language.text(FORMATS[name].said_in)}." for name in formats]
    paragraphs = [
        f"# {markdown_text(export.title)}",
        export.kind,
        markdown_text(export.guarantee),
        "\n".join(files),
        export.adding_up,
        clamping_sentences(export.language, export.amounts),
    ]
    text = "\n\n".join(filter(None, paragraphs))
    (folder / README).write_text(f"{text}\n", encoding="utf-8", newline="\n")


def _write_readme(
    export: Export, folder: Path, formats: Sequence[str], *, with_copies: bool
) -> None:
    meanings: dict[str, dict[str, None]] = {}  # parts of a release may mean something else
    for table in export.tables:
        for column in table.columns:
            if not column.names_cells:
                meanings.setdefault(column.name, {})[column.meaning] = None
    numbers = {name: " Or: ".join(each) for name, each in meanings.items()}
    text = text_from_template(
        "rpexplore.results",
        "published.md.j2",
        export=export,
        formats=[FORMATS[name] for name in formats],
        with_copies=with_copies,
        numbers=numbers,
        renamed={title: name for title, name in export.attribute_names.items() if title != name},
        markdown=markdown_text,
        formulas=FORMULAS_ESCAPED if export.escape_formulas else "",
    )
    (folder / README).write_text(text, encoding="utf-8", newline="\n")
