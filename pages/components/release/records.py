"""The records of a release: where they are, whose they are, and values outside the codebook."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from pages.components.release.form import ReleaseForm
from pages.components.release.release_task import RELEASE_TASK, project_task
from pages.components.shared.autosave import open_key
from pages.components.shared.files import data_files, path_choice
from pages.components.shared.session import attempt, escaped, kept
from rpexplore.analysis.glossary import meaning
from rpexplore.common.numbers import shown_few
from rpexplore.common.text import plural, with_article
from rpexplore.data.coding import able_to_take
from rpexplore.data.engines.connections import connection_named, connection_names, secrets_file
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.offered import ddi_codebooks, records
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import PersonRule, Source
from rpexplore.domain.domain import Domain
from rpexplore.domain.record_layout import RecordLayout
from rpexplore.domain.values import describe_combinations
from rpexplore.errors import DataError, RpexploreError
from rpexplore.planning.plan import Plan
from rpexplore.scenarios import examples
from rpexplore.scenarios.codebook_grid import values_of
from rpexplore.scenarios.examples import example_for

S = TypeVar("S", bound=Source)

SAMPLE = "The sample data"
PATH = "A file or folder on this computer"
DATABASE = "A table of a database"
REFUSE, KEEP = "Refuse the records", "Count only the first"
# What is typed about the records and the place of a release: it belongs to the project.
_TYPED = {
    "source": SAMPLE,
    **dict.fromkeys(("data path", "positions path", "connection", "database table"), ""),
    **dict.fromkeys(("output", "ledger", "limit"), ""),
}
_PROJECT = "release fields of"


def recall_typed() -> None:
    """Have the fields say what was typed for the open project; at first, nothing."""
    key, before = open_key(), st.session_state.get(_PROJECT)
    if key == before:
        return
    of_projects = st.session_state.setdefault("release fields", {})
    if before is not None:
        of_projects[before] = {
            name: st.session_state.get(name, usual) for name, usual in _TYPED.items()
        }
        st.session_state.update(of_projects.get(key, _TYPED))
    st.session_state[_PROJECT] = key


def data_source(planned: Plan) -> Source | None:
    """Where the records are; they are counted there and travel nowhere. None if not yet said."""
    source = st.radio(
        "Take the records from",
        [SAMPLE, PATH, DATABASE],
        key="source",
        on_change=_forget,
        horizontal=True,
        persist_state="session",
    )
    if source == DATABASE:
        return _database()
    return _sample(planned) if source == SAMPLE else _path(planned)


def _sample(planned: Plan) -> Source | None:
    """The records of the example that the plan is for, if there is one."""
    if records := examples.sample_records_for(planned):
        st.caption(f"{examples.SUMMARY} All of it is made up: {escaped(str(records))}")
        return FileSource(records)
    if planned.part("areas") is not None:
        st.info(
            "The plan is not for the areas and attributes of the sample country. Take the records "
            "from a file."
        )
        return None
    columns = list(planned.columns)
    example = example_for(planned.domain, columns)
    if example is not None:
        st.caption(f"{example.summary} All of it is made up: {escaped(str(example.records))}")
        return FileSource(example.records)
    st.info(
        "The plan is for another codebook: no sample has all the columns that it needs "
        f"({escaped(shown_few(columns))}). Take the records from a file."
    )
    return None


def _path(planned: Plan) -> Source | None:
    of_areas = ""
    if (areas := planned.part("areas")) is not None:
        levels = areas.workload.tree.levels
        of_areas = escaped(
            f", and codes of areas: a column for each level ({', '.join(levels[1:])}), or for the "
            "lowest alone where no two leaves have the same code"
        )
    path = path_choice(
        "File (.csv, .parquet, .dat, SPSS, Stata or SAS), or folder with such files",
        "data path",
        data_files(records),
        on_change=_forget,
        example="/data/survey.csv",
        help="The records are counted where they lie, on this computer. They need the plan's "
        f"attributes as columns{of_areas}; other columns are not read. Parts of folders such as "
        "year=2026 are columns too.",
    )
    if path is None:
        st.info("Choose the file or folder with the records to go on.")
        return None

    def readable() -> FileSource:
        if os.path.exists(path) and not os.access(path, os.R_OK):
            raise DataError(f"{path} cannot be read; ask for the right to.")
        return _readable(FileSource(path))

    source = attempt(readable)
    return source and _with_positions(source)


def _with_positions(source: FileSource) -> FileSource | None:
    """The records, of fixed width by their codebook; None while that is needed and not named."""
    needed = source.needs_layout
    if not needed and ".txt" not in source.path.name.lower():
        return source
    label = "DDI codebook (.xml) with the positions of the columns"
    path = path_choice(
        label if needed else f"{label}, if they have fixed width",
        "positions path",
        data_files(ddi_codebooks),
        on_change=_forget,
        example="/data/usa.xml",
        help="In records of fixed width nothing separates the columns, and no line names them: the "
        "codebook says where each one stands.",
    )
    if path is None:
        if needed:
            st.info("Choose the codebook with the positions to go on.")
        return None if needed else source
    modified = path.stat().st_mtime_ns if path.is_file() else 0
    layout = attempt(lambda: kept(RecordLayout.load, path, by=(path, modified)))
    return layout and FileSource(source.name, layout=layout)


def _database() -> Source | None:
    """A table by the name of its connection; what the connection is never comes into the page."""
    left, right = st.columns(2)
    name = left.text_input(
        "Name of the connection",
        key="connection",
        on_change=_forget,
        persist_state="session",
        placeholder="SURVEY_DB",
        help="The address and password stay out of this page: name the environment variable of "
        "the server that holds them, or an entry under [connections] in "
        f"{escaped(str(secrets_file()))}, such as postgresql://user:password@host/database.",
    )
    table = right.text_input(
        "Table or view",
        key="database table",
        on_change=_forget,
        persist_state="session",
        placeholder="survey.people",
        help="A server or a cluster counts it there, and only counts come back: only the command "
        "line, with --stream, lets records leave a server, and its release says so. What a DuckDB "
        "or SQLite file holds is counted here, as in other files.",
    )
    try:
        names = connection_names()
    except RpexploreError as error:  # a variable of the environment may do all the same
        st.warning(escaped(str(error)))
    else:
        if names:
            left.caption(escaped(f"In the file of secrets: {', '.join(names)}"))
    if not name.strip() or not table.strip():
        st.info("Name the connection and the table with the records to go on.")
        return None

    return attempt(lambda: kept(_connected, name.strip(), table.strip()))


def _connected(name: str, table: str) -> Source:
    return _readable(DatabaseSource(connection_named(name), table))


def _readable(source: S) -> S:
    source.fingerprint()  # fails here if the records cannot be read
    return source


def _forget() -> None:
    """Other records: another folder for their release, their own ledger and budget limit, and no
    word on an earlier failure."""
    for key in ("output", "ledger", "limit"):
        st.session_state[key] = ""
    task = project_task()
    if task is not None and task.failed:
        del st.session_state[RELEASE_TASK]


def person_rule_input(form: ReleaseForm) -> PersonRule | None:
    """How the limit of records per person is kept; None where it is taken for granted."""
    budget, data = form.planned.budget, form.data
    most, noun = budget.max_records_per_person, budget.noun
    if most is None:
        return None
    if budget.distinct is not None:
        st.markdown(
            f"The plan counts each value of the column {escaped(budget.distinct)} once. Records of "
            f"one {escaped(noun)} that differ in what is counted are refused."
        )
        return None
    columns = form.attempt(lambda: list(kept(data.columns)))
    if columns is None:
        return None
    st.markdown(
        f"The plan protects {escaped(budget.unit)}. Name the column that identifies the "
        f"{escaped(noun)} of a record, and the limit is checked; without it, it is taken for "
        "granted."
    )
    left, middle, right = st.columns(3)
    example = example_for(form.planned.domain, list(form.planned.columns))
    proposed = example.person_column if example and data == FileSource(example.records) else ""
    column = left.selectbox(
        f"Column with the {escaped(noun)}",
        columns,
        index=columns.index(proposed) if proposed else None,
        key="person column",
        persist_state="session",
        placeholder="none: taken for granted",
    )
    if column is None:
        return None
    excess = middle.radio(
        f"If {escaped(with_article(noun))} has more than {plural(most, 'record')}",
        [REFUSE, KEEP],
        key="person excess",
        persist_state="session",
    )
    if excess == REFUSE:
        return PersonRule(column, most)
    has_order = data.home is not None
    order = right.selectbox(
        "The first by which column",
        columns,
        index=None,
        key="person order",
        persist_state="session",
        placeholder="the order of the file" if has_order else "Choose a column",
    )
    if order is None and not has_order:
        form.wait("The records of a database have no order: choose the column that gives one.")
    return PersonRule(column, most, "keep first", order)


@dataclass(frozen=True)
class _Takers:
    """The questions which category takes values that are in none.

    noun  of the values, at the beginning of a sentence
    key   of the widgets
    """

    noun: str
    key: str


_UNKNOWN = _Takers("Out-of-codebook values", "other")
_MISSING = _Takers("Missing values", "missing")


def taker_inputs(form: ReleaseForm) -> dict[str, dict[str, str]]:
    """For attributes of the user's choice: the categories that take values that are in none.

    As the arguments `missing_values` and `unknown_values` of a release.
    """
    _forget_other_codebook(form.planned.domain)
    return {
        "missing_values": _taker_input(form, _MISSING),
        "unknown_values": _taker_input(form, _UNKNOWN),
    }


def _taker_input(form: ReleaseForm, asked: _Takers) -> dict[str, str]:
    domain, noun, key = form.planned.domain, asked.noun, f"{asked.key}s"
    takers = {}
    with st.expander(noun, expanded=bool(st.session_state.get(key))):
        st.markdown(meaning(noun))
        able = [attribute.name for attribute in domain if able_to_take(attribute)]
        chosen = st.multiselect(
            f"{noun} are counted in a category of",
            able,
            key=key,
            persist_state="session",
            help="Numbers have such a category if the codebook gives them missing values.",
        )
        for name in chosen:
            labels = _labels(domain, name)
            takers[name] = st.selectbox(
                f"{noun} of {escaped(name)} are counted as",
                able_to_take(domain[name]),
                index=None,
                format_func=lambda value, labels=labels: str(labels.get(value, value)),
                placeholder="Choose a category",
                key=f"{asked.key} value of {name}",
                persist_state="session",
            )
    if None in takers.values():
        form.wait(f"Choose the category for {noun.lower()} above to go on.")
    return {name: value for name, value in takers.items() if value is not None}


def count_impossible_input(planned: Plan) -> bool:
    """Whether records with impossible combinations are counted; asked if the codebook has some."""
    stated = planned.domain.impossible
    return bool(stated) and st.checkbox(
        "Count records with impossible combinations as they are",
        key="count impossible",
        persist_state="session",
        help=f"The codebook states {escaped(describe_combinations(stated))}. Without this, such "
        "records are refused, before anything is spent. With it, unbiased counts keep them, "
        "estimates that follow the codebook are 0 there, and the release says so.",
    )


def taker_caption(domain: Domain, takers: Mapping[str, Mapping[str, str]]) -> None:
    """The categories that take other values of each attribute, in a line beside the button."""
    for option, asked in (("missing_values", _MISSING), ("unknown_values", _UNKNOWN)):
        pairs = takers[option].items()
        parts = [f"{name} → {_labels(domain, name).get(value, value)}" for name, value in pairs]
        if parts:
            st.caption(escaped(f"{asked.noun}: {', '.join(parts)}"))


def _labels(domain: Domain, name: str) -> dict[str, str]:
    """{value: "R12 (Outer Isles)"} for an attribute's values; the label where it says more."""
    frame = values_of(domain[name])
    pairs = zip(frame["value"].tolist(), frame["label"].tolist(), strict=True)
    return {value: value if label == value else f"{value} ({label})" for value, label in pairs}


def _forget_other_codebook(domain: Domain) -> None:
    """Choices were made among the categories of one codebook; under another they mean nothing."""
    before: Domain | None = st.session_state.get("others of")
    if before is not None and before != domain:
        for asked in (_UNKNOWN, _MISSING):
            st.session_state[f"{asked.key}s"] = []
            for name in before.names:
                st.session_state.pop(f"{asked.key} value of {name}", None)
    st.session_state["others of"] = domain
