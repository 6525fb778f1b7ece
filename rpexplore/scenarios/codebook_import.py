"""Where a codebook comes from: plans, typed lines, the columns of a data file."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rpexplore.common.files import utf8_text
from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown
from rpexplore.common.text import is_text, joined, plural
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.codebook_rows import why_not_in_csv
from rpexplore.domain.domain import (
    Domain,
    completed,
    is_unfinished,
    label_from_records,
    to_complete,
)
from rpexplore.domain.ordered_values import Dates, Integers
from rpexplore.domain.values import combination_from_text, selection_mask, stated_combinations
from rpexplore.errors import DomainError
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.codebook_grid import values_in_all
from rpexplore.scenarios.examples import EXAMPLES, without_invented_counts
from rpexplore.scenarios.scenario import NAME_LENGTH, Scenario
from rpexplore.workload.table_text import list_titles

_MAX_CSV_LINES = 1_000_000
_NO_NAMES = ("codebook", "datapackage", "schema", "tableschema", "data")  # of a survey
_ENDING = re.compile(
    r"\.(?:json|csv|csv\.gz|txt|parquet|pq|z?sav|por|dta|sas7bdat|xpt|xml)$", re.IGNORECASE
)


def scenario_from_bytes(content: bytes, filename: str, present: Scenario) -> Scenario:
    """The present scenario with the inputs of an uploaded plan.

    The record noun stays the same if the codebook does. Raises `RpexploreError` for a file that is
    no plan.
    """
    # Plans have no byte order mark.
    text = utf8_text(content, filename, DomainError, may_have_mark=False)
    opened = Scenario.of_plan(TablePlan.parse(text, filename))
    same = opened.domain == present.domain
    record_noun = present.record_noun if same else opened.record_noun
    present = without_invented_counts(present, opened.domain)
    return opened.replaced(
        record_noun=record_noun,
        name=present.name,
        note=present.note,
        survey=present.survey,
        areas=present.areas,
    )


def survey_named_after(filename: str, present: str) -> str:
    """What to call the survey of a codebook or data file: as before, unless that was an example's.

    Then it is called as the file is, without its ending; "" where that says nothing.
    """
    if present and present not in [example.title for example in EXAMPLES]:
        return present
    stem = _ENDING.sub("", filename)
    if not is_text(stem) or re.sub(r"[\W_]", "", stem).lower() in ("", *_NO_NAMES):
        return ""
    stem = stem.replace("_", " ").strip()
    return f"{stem[:1].upper()}{stem[1:]}"[:NAME_LENGTH]


def domain_from_lines(text: str) -> Domain:
    """A codebook typed as lines: "age 0..99", "income 0..9999 step 500", "region 12", "sex: F, M",
    "admitted 2026-01-01..2026-12-31 step month".

    Raises `DomainError` naming the line that cannot be used.
    """
    attributes = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            with refusing(DomainError, f"Line {number}"):
                attributes.append(_attribute_from_line(line.strip()))
    if not attributes:
        raise DomainError("There is no attribute in these lines; write one a line.")
    return Domain(tuple(attributes))


def describe_codebook(domain: Domain, kind: str) -> str:
    """What a codebook holds: "Table Schema: 7 attributes, 84 values, 2 attributes with levels."."""
    text = f"{kind}: {plural(len(domain), 'attribute')}, {plural(values_in_all(domain), 'value')}"
    grouped = sum(bool(attribute.groups) for attribute in domain)
    return f"{text}, {plural(grouped, 'attribute')} with levels." if grouped else f"{text}."


def describe_loaded(scenario: Scenario, what: str) -> str:
    """What was loaded as the codebook, and which settings of tables and attributes were kept."""
    domain, request = scenario.domain, scenario.request
    text = f"Loaded {describe_codebook(domain, what)}"
    if request.settings:
        tables = [setting.attributes for setting in request.settings]
        text += f" Kept: weight or target of {list_titles(tables)}."
    if request.basis_choices:
        names = dict.fromkeys(choice.attribute for choice in request.basis_choices)
        text += f" Kept: the basis of {list_titles([(name,) for name in names])}."
    return text


def domain_of_columns(
    columns: Mapping[str, Sequence[str]],
    *,
    from_records: Collection[str] = (),
    present: Domain | None = None,
    missing: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> Domain:
    """The domain of a data file's columns: {name: its values}, without values to be completed.

    from_records: the columns whose values come from records, which their labels then say as well.
    present: the domain that they are added to; what it has already stays, but for values that it
    waits for.
    missing: by column, the values that stand for no answer, and their labels.
    """
    attributes = {attribute.name: attribute for attribute in present or ()}
    for name, values in columns.items():
        if name not in attributes or is_unfinished(attributes[name]):
            label = attributes[name].label if name in attributes else ""
            if name in from_records:
                label = label_from_records(label)
            waiting = to_complete(name, label, (missing or {}).get(name, ()))
            if values:
                waiting = completed(waiting, Categories(tuple(values)))
            attributes[name] = waiting
    return (present or Domain(())).with_attributes(attributes.values())


def why_no_csv(domain: Domain) -> str:
    """Why there is no CSV codebook of a domain, in a sentence; "" where there is one."""
    for attribute in domain:
        if reason := why_not_in_csv(attribute):
            return f"A CSV codebook cannot say that {attribute.name} {reason}. JSON holds all."
    if int(domain.sizes.sum()) > _MAX_CSV_LINES:
        return "There are too many values to list one by one. JSON holds all."
    if domain.impossible:
        return "A CSV codebook has no place for impossible combinations. JSON holds all."
    return ""


def _attribute_from_line(line: str) -> Attribute:
    name, colon, listed = line.partition(":")
    if colon:
        values = tuple(value.strip() for value in listed.split(",") if value.strip())
        return Attribute(name.strip(), Categories(values))
    line_without_step, _, step_text = line.replace("=", " ").partition(" step ")
    name, _, last = line_without_step.strip().rpartition(" ")
    low, dots, high = last.partition("..")
    try:
        step = int(step_text or 1)
        limits = (int(low), int(high)) if dots else (0, int(last) - 1)
    except ValueError:
        if dots and name and re.match(r"\d{4}-", low):
            return Attribute(name.strip(), Dates(low.strip(), high.strip(), step_text.strip()))
        limits, step = None, 1
    if not name or limits is None:
        raise DomainError(
            f"{shown(line)!r} must be a name with its number of values (region 12), its range "
            "(age 0..99) or its categories (sex: F, M)."
        )
    return Attribute(name.strip(), Integers(*limits, step))


# ---- Impossible combinations as lines that people type: "age=0..14 marital_status=Married".


def lines_of(domain: Domain) -> str:
    """What a domain states to be impossible, one combination a line."""
    return "\n".join(combination.text for combination in domain.impossible)


def domain_with_lines(domain: Domain, text: str) -> Domain:
    """The domain that states these combinations, one a line, and no others.

    Raises `DomainError` for the first line that cannot be used.
    """
    # As they are, not read again: a value may be called as a selection begins ("sex=").
    known = {combination.text: dict(combination.selections) for combination in domain.impossible}
    # Not splitlines: names may hold what Unicode calls a line separator.
    lines = filter(None, map(str.strip, text.split("\n")))
    stated = [known.get(line) or combination_from_text(domain, line) for line in lines]
    return replace(domain, impossible=stated_combinations(domain, stated))


_LISTED = 3  # combinations in a sentence
_LISTED_VALUES = 5  # of an attribute in one of them


def combinations_in_words(domain: Domain) -> str:
    """The codebook's combinations by labels: "Age in years 0 to 14 with Sex Male or Other; …"."""
    listed = domain.impossible[:_LISTED]
    texts = [
        " with ".join(_in_words(domain[name], chosen) for name, chosen in combination.selections)
        for combination in listed
    ]
    more = len(domain.impossible) - len(listed)
    return "; ".join([*texts, *([f"and {more:,} more"] if more else [])])


def _in_words(attribute: Attribute, chosen: str) -> str:
    """The title of an attribute and the labels of chosen values, many as runs, or as typed."""
    if isinstance(attribute.values, Amounts):
        return f"{attribute.title} {chosen}"
    labels = attribute.labels()
    rows = np.flatnonzero(selection_mask(attribute, [chosen]))
    words = [labels[row] for row in rows]
    if len(rows) > _LISTED_VALUES or not isinstance(attribute.values, Categories):
        runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
        words = [
            labels[run[0]] if len(run) == 1 else f"{labels[run[0]]} to {labels[run[-1]]}"
            for run in runs
        ]
    text = joined(words, " or ") if len(words) <= _LISTED_VALUES else chosen
    return f"{attribute.title} {text}"
