"""Exports: copies of finished tables under names that all formats take, and their metadata."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rpexplore.common.numbers import exact_text, float_at_least
from rpexplore.common.processes import Progress, in_order, no_progress
from rpexplore.common.text import (
    capitalised,
    joined,
    plural_noun,
    text_of_path,
    without_formula,
)
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.area_tree import TOP
from rpexplore.domain.categories import Categories
from rpexplore.domain.result_schema import (
    EMPTY_NOTE,
    IMPOSSIBLE_NOTE,
    KNOWN_NOTE,
    NUMBER,
    OWN_COUNT,
    RECORDS,
    STATUS,
    WEIGHTED_RECORDS,
    Schema,
    frame_of,
)
from rpexplore.errors import ReleaseError
from rpexplore.privacy.budget import ADD_REMOVE
from rpexplore.privacy.conversions import epsilon_from_rho, epsilon_texts, rho_text
from rpexplore.releases.items import Item, PartReader
from rpexplore.releases.manifest import manifest_sha256, read_manifest
from rpexplore.releases.table_cells import CsvWriter
from rpexplore.results.estimates.area_counts import ROUNDED
from rpexplore.results.formats.amount_texts import (
    amounts_in,
    clamping_sentences,
    label_of_amounts,
    meaning_of_amounts,
)
from rpexplore.results.formats.crosstab import TOTALS
from rpexplore.results.formats.export_columns import (
    Column,
    attribute_names,
    columns_of_table,
    key_of_meaning,
    safe_name,
)
from rpexplore.results.formats.export_figures import as_written, decimals_of, statuses_of
from rpexplore.results.formats.imprint import Imprint
from rpexplore.results.formats.item_shares import with_shares
from rpexplore.results.formats.languages import ENGLISH, Language
from rpexplore.results.formats.small_counts import (
    checked_limit,
    count_records,
    with_small_counts,
)
from rpexplore.results.level_groups import TITLES, LevelGroups, levels_in, levels_of_domain
from rpexplore.results.measurement_source import Spent, sources_of, spent
from rpexplore.results.results import AnyResults, load_any_results

if TYPE_CHECKING:
    import pandas as pd

# A format describes these copies, or writes its own; see `publishing`. All sentences on privacy are
# those of the manifest.


MOST_LISTED = 1000  # texts of a column that a description lists one by one


_MADE_RANGE = re.compile("[0-9QW.,:/+−-]+ to [0-9QW.,:/+−-]+")
_SAID = {
    "yes": "yes", "no": "no", IMPOSSIBLE_NOTE: "impossible", EMPTY_NOTE: "empty_area",
    KNOWN_NOTE: "known",
}  # fmt: skip


@dataclass(frozen=True)
class ExportedTable:
    """A table of an export.

    item        in the folder of results
    attributes  in the order of its columns, levels of areas among them
    columns     of the file
    key         the names of the columns that no two rows have alike; empty if there are none
    path        of the CSV file within the export, "" if there is none
    copied      the columns of that file: in other languages than English some have labels besides
    n_bytes, sha256   of that file
    note        what is known of all its errors together, as a sentence; "" for nothing
    """

    item: Item
    attributes: tuple[str, ...]
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    n_rows: int
    path: str = ""
    copied: tuple[Column, ...] = ()
    n_bytes: int = 0
    sha256: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """Its number and attributes, in small letters: "0003_age_sex"."""
        return self.item.name.lower()

    @property
    def title(self) -> str:
        """ "age × sex"; "total" of no attributes; "municipality: age × sex"."""
        return self.item.title

    def refuse_alike(self, files: str) -> None:
        """Raise `ReleaseError` for rows that are called alike, which such files cannot hold."""
        if self.n_rows > 1 and not self.key:
            raise ReleaseError(
                f"The table ({self.title}) has rows that are called alike, which {files} cannot "
                "tell apart; give them different labels, or choose another format."
            )


@dataclass
class Export:
    """A finished folder of tables, while it is written for other programs.

    source   the folder of a release, or of combined or processed tables
    shares   what figures have shares of beside them, one of `crosstab.TOTALS`; "" for none
    with_status   whether the last column is the status of each figure
    fewer_than   counts below this are printed as "fewer than …"; 0: none are
    language  of all texts but those of the codebook
    tables   of the export, from `read_tables` on
    """

    source: Path
    imprint: Imprint = field(default_factory=Imprint)
    escape_formulas: bool = False
    shares: str = ""
    with_status: bool = False
    language: Language = ENGLISH
    fewer_than: int = 0
    tables: list[ExportedTable] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.manifest: Mapping[str, Any] = read_manifest(self.source)
        self.results: AnyResults = load_any_results(self.source)
        if self.shares not in ("", *TOTALS):
            raise ReleaseError(
                f"Shares are of a {joined(TOTALS, ' or ')}, got {self.shares!r}; name one of these."
            )
        if checked_limit(self.fewer_than):
            self._check_small_counts()

    def _check_small_counts(self) -> None:
        if self.shares:
            raise ReleaseError(
                f"Shares would tell the counts that are printed as fewer than {self.fewer_than}; "
                "ask for shares, or for these words."
            )
        if not any(count_records(*one).any() for one in self._part_and_item.values()):
            raise ReleaseError(
                "Sums, means, weighted counts and own counts with other coefficients than 0 and 1 "
                f"are no counts of records, of which those below {self.fewer_than} could be "
                "printed in words; leave the limit out."
            )

    # ---- what is known of all tables

    @property
    def title(self) -> str:
        return self.imprint.title or text_of_path(self.source.resolve().name)

    @property
    def name(self) -> str:
        """An identifier: small letters, digits, underscores."""
        return safe_name(self.title, fallback="tables").lower()

    @property
    def noise_sentences(self) -> list[str]:
        """What noise is in the figures of each part, once for those that are alike."""
        language, paragraphs = self.language, dict[str, None]()
        whom = language.unit(self._spent.unit_noun or self._distinct or "person")
        key = "noisy_replaced" if self.replaces else "noisy"
        noisy = [language.text(key if self._spent.is_known else "noisy_unstated", **whom)]
        if self._spent.exact:
            totals = language.joined([" × ".join(total) for total in self._spent.exact])
            noisy.append(language.text("only_exact", totals=totals))
        if any(values.are_weights for values in self.amounts.values()):
            noisy.append(language.text("noisy_weighted"))
        if not all(values.are_weights for values in self.amounts.values()):
            noisy.append(language.text("noisy_sums"))
        if self.amounts:
            noisy.append(clamping_sentences(language, self.amounts))
        for part in self.results.readers:
            own = [*noisy, language.text("noise_size")]
            if part.is_smooth or part.is_biased:
                key = "by_model" if part.is_smooth else "processed"
                own = [language.text(key, label=label_in(language, part), **whom)]
            if not part.is_smooth:  # whose margins are those of its model
                own.append(language.text("noise_alone"))
            paragraphs |= dict.fromkeys(own)
        return [*paragraphs, language.text("errors_before"), *self.words_for_small]

    @property
    def words_for_small(self) -> list[str]:
        """What the words in the place of small counts mean, where there are any."""
        if not self.fewer_than:
            return []
        said = [self.language.text("fewer_than_note", n=self.fewer_than)]
        if not all(count_records(*one).all() for one in self._part_and_item.values()):
            said.append(self.language.text("fewer_than_others"))
        return [" ".join(said)]

    @property
    def replaces(self) -> bool:
        """Whether neighbours replace records, so that some figures are public, and exact."""
        return self._spent.neighbours != ADD_REMOVE

    @cached_property
    def _spent(self) -> Spent:
        return spent(sources_of(self.results))

    @property
    def guarantee(self) -> str:
        """In English the words of the results; else ρ, unit and (ε, δ), and where these words are.

        The numbers are the same in every language.
        """
        if self.language.is_english:
            return self.results.guarantee
        text, total = self.language.text, self._spent
        conditions = {source.universe for source in sources_of(self.results)} - {""}
        ends = [text("universe", condition=condition) for condition in conditions]
        ends.append(text("in_full", sha256=manifest_sha256(self.source)))
        of_unit = {
            "rho": self.language.number(rho_text(total.rho)),
            "unit": self._unit_in(self.language),
        }
        if not total.is_known:
            key = "guarantee_at_least" if total.rho else "guarantee_unknown"
            return " ".join([text(key, **of_unit), *ends])
        if self.results.made_of:
            epsilons = epsilon_texts(lambda delta: epsilon_from_rho(total.rho, delta), None)
        else:
            epsilons = self.results.plan.epsilon_texts  # by its own noise
        key = "guarantee_replaced" if self.replaces else "guarantee"
        guarantee = text(
            "guarantee_exact" if total.exact else key,
            **of_unit,
            epsilons=text("between").join(
                self.language.number(epsilon).replace(" at ", f" {text('at')} ")
                for epsilon in epsilons
            ),
        )
        return " ".join([guarantee, *ends])

    @property
    def _distinct(self) -> str:
        return next((one.distinct for one in sources_of(self.results) if one.distinct), "")

    @property
    def privacy_unit(self) -> str:
        """Whom the guarantee protects, in the language of the export."""
        return self._spent.unit if self.language.is_english else self._unit_in(self.language)

    def _unit_in(self, language: Language) -> str:
        """The privacy unit in a language, of the usual kinds."""
        most, noun = self._spent.max_records_per_person, self._spent.unit_noun
        if self._distinct:
            one = language.unit(noun or self._distinct)["one"]
            return language.text("one_unit_distinct", one=one, column=self._distinct)
        if most is None and not noun:
            return language.text("one_record")
        one = language.unit(noun or "person")["one"]
        if period := sources_of(self.results)[0].period:
            return language.text("one_unit_panel", n=most or 1, one=one, period=period)
        key = {None: "one_unit_of_record", 1: "one_unit_of_one"}.get(most, "one_unit")
        return language.text(key, n=most or 1, one=one)

    @property
    def adding_up(self) -> str:
        """What sums of the figures are worth, in sentences."""
        if self.language.is_english:
            return self.results.adding_up
        keys = {"counts": "adding_up_counts", "rounds": "adding_up_estimates"}
        used = dict.fromkeys(keys.get(part.kind, "adding_up") for part in self.results.readers)
        return " ".join(map(self.language.text, used))

    @cached_property
    def bounds(self) -> Mapping[str, str]:
        """What is known of all errors of each table together, by its name; "" for nothing."""
        texts = [text for part in self.results.readers for text in part.bound_texts]
        sentences = map(self._bound_sentence, texts)
        return dict(zip([item.name for item in self.results.items], sentences, strict=True))

    def _bound_sentence(self, limit_and_share: tuple[str, str] | None) -> str:
        if limit_and_share is None:
            return ""
        limit, share = map(self.language.number, limit_and_share)
        key = "bound_share" if share else "bound" if limit else "no_bound"
        return self.language.text(key, limit=limit, share=share)

    def title_of(self, table: ExportedTable) -> str:
        """The title of a table, its attributes as the codebook calls them at length."""
        item, titles = table.item, self.attribute_titles
        title = " × ".join(self.head(titles.get(name, name)) for name in item.attributes)
        title = title or self.language.text("total").lower()
        title += f" ({self.note_of(item)})" if item.note else ""
        return title if item.level is None else f"{self.level(item.level)}: {title}"

    def note_of(self, item: Item) -> str:
        """What tells a table from another one of the same attributes; "" for nothing."""
        return self.language.text(f"note_{item.note}") if item.note else ""

    @cached_property
    def amounts(self) -> Mapping[str, Amounts]:
        """The attributes of amounts and weights in some table, or that own counts add up."""
        amounts: dict[str, Amounts] = {}
        for item in self.results.items:
            amounts |= amounts_in(self.results.domain, item)
        for part in self.results.readers:
            if part.kind == "counts" and part.domain is not None:
                amounts |= {
                    one.name: one.values for one in part.domain if isinstance(one.values, Amounts)
                }
        return amounts

    def level(self, name: str) -> str:
        """What a level of areas is called: the list of areas has no word for the one of all."""
        return self.language.text("all_values") if name == TOP else name

    def head(self, attribute: str) -> str:
        """What stands above the values of an attribute."""
        return self.language.text("own_count") if attribute == OWN_COUNT else attribute

    def head_of(self, column: Column) -> str:
        """What stands above a column of figures or notes: "standard error"."""
        if self.language.is_english:
            return column.title.replace("_", " ")
        return self.language.text(f"head_{column.role}")

    def meaning_of(self, column: Column, table: ExportedTable) -> str:
        """What a column of a table is; in English as the release says it."""
        if self.language.is_english or column.role == "shown":
            return column.meaning
        if amounts := amounts_in(self.results.domain, table.item):
            meaning = meaning_of_amounts(self.language, column.role, amounts, table.item)
            if meaning:
                return meaning
        return self.language.text(key_of_meaning(column, {one.role for one in table.columns}))

    def unit_of(self, unit: str) -> str:
        """What a unit is called; "" and `NUMBER` are none."""
        if unit == RECORDS:
            return self.records
        if unit == WEIGHTED_RECORDS:
            return self.language.text("weighted_count")
        return self.language.text("unit_number") if unit in ("", NUMBER) else unit

    @property
    def records(self) -> str:
        """What a record is called, in the plural: as is said, or in English as in the plan."""
        if self.imprint.records:
            return self.imprint.records
        noun = self._spent.unit_noun or self._distinct
        # Of a unit with several records each of these is counted, and not the unit.
        if noun and self.language.is_english and self._spent.max_records_per_person in (None, 1):
            return plural_noun(noun)
        return self.language.text("unit_records")

    def said(self, text: str, column: Column) -> str:
        """What a column of words says of a cell."""
        if self.language.is_english or not text:
            return text
        if column.role == "unit":
            return self.unit_of(text)
        if text == self.language.text("fewer_than", n=self.fewer_than):
            return text
        if text in _SAID:
            return self.language.text(_SAID[text])
        (label,) = {
            label_in(self.language, part) for part in self.results.readers if part.is_biased
        }
        return label  # of biased figures, which are all of one part

    def label(self, attribute: str, text: str) -> str:
        """The label of a value, or of values together, in the language of the export."""
        domain = self.results.domain
        if domain is not None and attribute not in self._own_labels:
            return text  # areas and own counts are called what somebody calls them
        if domain is not None and isinstance(values := domain[attribute].values, Amounts):
            return label_of_amounts(self.language, values, text, self.records)
        return self.language.label(text, self._own_labels.get(attribute, ()))

    @cached_property
    def _own_labels(self) -> Mapping[str, Collection[str]]:
        """The words of the codebook: of each attribute the labels of its values and levels."""
        domain = self.results.domain
        if domain is None:
            return {}
        words = {}
        for attribute in domain.attributes:
            values, own = attribute.values, set()
            for level in attribute.all_levels:
                own.update(level.labels)
            if isinstance(values, Categories):
                own.update(values.labels, values.values)
            elif hasattr(values, "missing_labels"):
                own.update(values.missing_labels)
            # Levels of numbers by a width have labels that were made, "10 to 19".
            if not isinstance(domain[attribute.of or attribute.name].values, Categories):
                own = {label for label in own if not _MADE_RANGE.fullmatch(label)}
            words[attribute.name] = own
        return words

    @property
    def description(self) -> str:
        """What the tables are and what holds for them."""
        return f"{self.kind} {self.guarantee}"

    @property
    def figures(self) -> str:
        """What the figures are: "Noisy tables"."""
        if self.language.is_english:
            return self.results.figures
        keys = {}
        for part in self.results.readers:
            key = "noisy_counts" if part.kind == "counts" else "noisy_tables"
            if part.is_biased:
                key = "processed_tables"
            keys["model_tables" if part.is_smooth else key] = None
        return "; ".join(map(self.language.text, keys))

    @property
    def kind(self) -> str:
        """What the tables are, as a sentence; in other languages than English in several."""
        if not self.language.is_english:
            return " ".join(self.noise_sentences)
        kind = f"{self.results.figures}, {self.results.label}."
        return " ".join([kind, *self.words_for_small])

    @property
    def created(self) -> str:
        """When the tables were finished, with time zone."""
        return self.manifest.get("finished") or self.manifest["created"]

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those in some table, and levels of areas, in the order of columns."""
        return self.results.attributes

    @cached_property
    def attribute_names(self) -> Mapping[str, str]:
        """What attributes are called in the export."""
        return attribute_names(self.attributes)

    @cached_property
    def attribute_titles(self) -> Mapping[str, str]:
        """What the codebook calls attributes at length; their names where it does not."""
        titles = {name: name for name in self.attributes}
        if self.results.domain is None:  # processed tables hold no codebook
            titles |= self.manifest.get(TITLES, {})
        else:
            titles |= {
                attribute.name: attribute.label or attribute.name
                for attribute in self.results.domain.attributes
            }
        return titles

    @cached_property
    def levels(self) -> Mapping[str, LevelGroups]:
        """The levels among the attributes of the tables, with their groups."""
        if self.results.domain is None:
            return levels_in(self.manifest)
        return levels_of_domain(self.results.domain, self.attributes)

    @cached_property
    def privacy(self) -> dict[str, Any]:
        """The guarantee as fields, as manifests have them: exact ρ as text, unit, sentences."""
        total = self._spent
        return {
            "definition": "zero-concentrated differential privacy (zCDP)",
            "rho": exact_text(total.rho),
            "rho_is_known": total.is_known,
            "privacy_unit": total.unit,
            "guarantee": self.guarantee,
            "label": capitalised(self.results.label),
            "manifest_sha256": manifest_sha256(self.source),
        }

    @property
    def rho(self) -> float:
        """The ρ of all that the tables were made from, rounded up."""
        return float_at_least(self._spent.rho)

    # ---- tables

    @property
    def has_notes(self) -> bool:
        return any(table.note for table in self.tables)

    def read_tables(self, folder: Path | None = None, on_progress: Progress = no_progress) -> None:
        """Read all tables, and write a copy of each as CSV into a folder if there is one."""
        if folder is not None:
            (folder / "tables").mkdir()
        items = self.results.items
        known: dict[tuple[str, ...], tuple[str, ...]] = {}  # texts that many tables share
        with closing(in_order(lambda item: self._read(item, folder), items)) as read:
            for position, table in enumerate(read):
                columns = tuple(
                    replace(column, texts=known.setdefault(column.texts, column.texts))
                    for column in table.columns
                )
                self.tables.append(replace(table, columns=columns))
                if position % 16 == 0:
                    on_progress("Writing the tables", position / len(items))

    def rows(self, table: ExportedTable) -> pa.Table:
        """The cells of a table, its columns by their names in the export."""
        rows = as_written(self._exported(table.item))
        return rows.rename_columns([column.name for column in table.columns])

    def frame(self, item: Item) -> "pd.DataFrame":
        """The rows of a table under the names of the folder of results, perhaps with shares."""
        return frame_of(self._rows_of(item))

    def _rows_of(self, item: Item) -> pa.Table:
        """The rows of a table as in the folder of results, perhaps with shares or without small
        counts.
        """
        rows = item.read()
        if self.shares:
            rows = with_shares(*self._part_and_item[item.name], rows, self.shares)
        if self.fewer_than:
            are_counts = count_records(*self._part_and_item[item.name])
            if are_counts.any():
                rows = with_small_counts(rows, are_counts, self.fewer_than, self.language)
        return rows

    def _exported(self, item: Item) -> pa.Table:
        """The same with what the copies have besides."""
        rows = self._rows_of(item)
        if self.with_status:
            status = statuses_of(rows)
            rows = rows.append_column(STATUS.field(status.type), status)
        return rows

    @cached_property
    def _part_and_item(self) -> dict[str, tuple[PartReader, Item]]:
        """The part that each table is of, and how that calls it, by the table's name."""
        own = [(part, item) for part in self.results.readers for item in part.items]
        names = [item.name for item in self.results.items]
        return dict(zip(names, own, strict=True))

    def _read(self, item: Item, folder: Path | None) -> ExportedTable:
        rows = self._exported(item)
        schema = Schema.of(rows)
        columns = columns_of_table(schema, self.attribute_names, self.attribute_titles)
        rows = as_written(rows)
        for index, column in enumerate(columns):
            if column.names_cells:
                texts = rows.column(index).unique().cast(pa.string()).to_pylist()
                columns[index] = replace(column, texts=self._different(texts))
        rows = rows.rename_columns([column.name for column in columns])
        table = ExportedTable(
            item,
            schema.attributes,
            tuple(columns),
            _key(rows, columns),
            rows.num_rows,
            note=self.bounds[item.name],
        )
        if folder is None:
            return table
        path = f"tables/{item.name}.csv"
        written, copied = rows, table.columns
        if not self.language.is_english:
            written, copied = self._translated(rows, columns)
        with (folder / path).open("wb") as file:
            writer = CsvWriter(
                file,
                written.column_names,
                decimals_of(rows),
                escape_formulas=self.escape_formulas,
            )
            writer.write(written)
        with (folder / path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        n_bytes = (folder / path).stat().st_size
        return replace(table, path=path, copied=copied, n_bytes=n_bytes, sha256=digest)

    def _translated(
        self, rows: pa.Table, columns: Sequence[Column]
    ) -> tuple[pa.Table, tuple[Column, ...]]:
        """Rows as written, with labels and words in the export's language, and their columns.

        Codes are the same in every language: those that are words, such as "18 to 24", have labels
        beside them.
        """
        labelled = {column.attribute for column in columns if column.role == "label"}
        written: list[tuple[Column, Any]] = []
        for index, column in enumerate(columns):
            cells = rows.column(index).combine_chunks()
            is_code = column.role == "code" and column.attribute in labelled
            if column.is_number or is_code or column.role in ("status", "flag"):
                written.append((column, cells))
                continue
            said = cells.dictionary.to_pylist()
            texts = [
                self.label(column.attribute, text)
                if column.names_cells
                else self.said(text, column)
                for text in said
            ]
            named = pa.DictionaryArray.from_arrays(cells.indices, pa.array(texts, pa.string()))
            if column.role == "code":
                written.append((column, cells))
                if texts == said:
                    continue
                column = replace(column, name=f"{column.name}_label", role="label")
                column = replace(column, texts=self._different(texts))
            written.append((column, named))
        names = [column.name for column, _ in written]
        return pa.table([cells for _, cells in written], names), tuple(one for one, _ in written)

    def _different(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Texts as they are in files, each once."""
        texts = dict.fromkeys(texts)
        return tuple(map(without_formula, texts)) if self.escape_formulas else tuple(texts)


def _key(rows: pa.Table, columns: Sequence[Column]) -> tuple[str, ...]:
    """The codes, or codes and labels, if no two rows have the same."""
    for roles in (("code",), ("code", "label")):
        names = [column.name for column in columns if column.role in roles]
        if names and rows.group_by(names).aggregate([]).num_rows == rows.num_rows:
            return tuple(names)
    return ()


def label_in(language: Language, part: PartReader) -> str:
    """How the figures of a part came about, in a language."""
    if language.is_english:
        return part.label
    if part.kind == "rounds":
        return language.text("adaptive_label")
    method, base = part.manifest.get("method"), int(part.manifest.get("rounded", 0))
    if part.kind != "processed":  # whole counts of areas, and best guesses
        method, base = "nonnegative", int(part.manifest.get(ROUNDED, 1))
    # Of areas this is a number of totals, and their label does not say them either.
    steps = ["known_met"] if isinstance(part.manifest.get("known_totals"), list) else []
    steps = [language.text(step) for step in [*steps, method] if step]
    if base > 1:
        steps.append(language.text("multiples", base=base))
    elif base:
        steps.append(language.text("whole"))
    return ", ".join(steps)


@dataclass(frozen=True)
class Format:
    """A format that tables can be exported to.

    title      what people call it
    files      what it adds to the folder, for its README
    write      writes that into a folder
    has_files_of_its_own   whether it has the tables in it, so that it needs no copies beside it
    said_in    the key of what it adds in `languages.TEXTS`; "" of one that is in English only
    """

    title: str
    files: str
    write: Callable[[Export, Path], None]
    has_files_of_its_own: bool = False
    said_in: str = ""
