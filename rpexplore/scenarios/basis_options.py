"""How attributes are asked, in words: the ways to choose from, examples, and what tables answer."""

import csv
import io
import re

import numpy as np

from rpexplore.common.formatting import joined, plural
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases import (
    MAX_VALUES,
    Basis,
    Hierarchy,
    Identity,
    Prefix,
    Ranges,
    Windows,
)
from rpexplore.workload.custom_basis import MAX_CUSTOM_VALUES, CustomBasis
from rpexplore.workload.custom_basis_file import custom_basis_from_csv, custom_basis_from_npy
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload

WAYS = {
    "identity": "each value",
    "prefix": "running totals: up to each value",
    "ranges": "every range of values",
    "windows": "rolling sums of … values",
    "hierarchy": "groups and single values",
    "custom": "own questions from a file",
}
# Those for which it matters in which order the values stand.
ORDERED = ("prefix", "ranges", "windows")

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def why_not(way: str, attribute: Attribute) -> str:
    """Why an attribute cannot be asked in this way; "" if it can."""
    most = MAX_CUSTOM_VALUES if way == "custom" else MAX_VALUES
    least = {"identity": 1, "prefix": 2, "ranges": 2, "custom": 1}.get(way, 3)
    if way == "hierarchy" and attribute.groups:
        least = 2
    if attribute.size < least:
        return f"at least {plural(least, 'value')} needed"
    if way != "identity" and attribute.size > most:
        return f"at most {most:,} values possible; join some on the Schema page"
    return ""


def refusals_in_words(attribute: Attribute) -> str:
    """Which ways are not there to be chosen, and why: one sentence, "" if all are."""
    reasons: dict[str, list[str]] = {}
    for way, words in WAYS.items():
        if reason := why_not(way, attribute):
            reasons.setdefault(reason, []).append(words.split(":")[0])
    told = "; ".join(f"{', '.join(ways)} ({reason})" for reason, ways in reasons.items())
    return f"Not for these values: {told}." if told else ""


def first_basis(way: str, attribute: Attribute) -> Basis | None:
    """What a way starts with; None for own questions, which only a file can give."""
    match way:
        case "prefix":
            return Prefix()
        case "ranges":
            return Ranges()
        case "windows":
            return Windows(min(5, attribute.size - 1))
        case "hierarchy":
            width = next(each for each in (10, 5, 2) if 3 * each <= attribute.size or each == 2)
            return Hierarchy(() if attribute.groups else (width,))
        case "custom":
            return None
    return Identity()


def hierarchy_of_text(text: str) -> Hierarchy:
    """Groups by typed widths ("5, 10"); nothing typed: the groups of the schema."""
    parts = [part for part in re.split(r"[\s,;]+", text) if part]
    wrong = next((part for part in parts if not part.isdecimal()), None)
    if wrong is not None:
        raise WorkloadError(
            f"The widths of groups must be whole numbers separated by commas, got {wrong!r}; type "
            "for example 5, 10."
        )
    return Hierarchy(tuple(int(part) for part in parts))


def text_of_hierarchy(basis: Basis) -> str:
    """The widths as they are typed; `hierarchy_of_text` undoes it."""
    return ", ".join(map(str, basis.widths)) if isinstance(basis, Hierarchy) else ""


# ---- own questions


def custom_basis_of_file(filename: str, content: bytes, attribute: Attribute) -> CustomBasis:
    """The own questions of a file, .npy or else CSV; raises `WorkloadError` if it holds none."""
    if filename.lower().endswith(".npy"):
        return custom_basis_from_npy(content, filename, attribute)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WorkloadError(f"{filename} is not UTF-8 text; save it as CSV in UTF-8.") from None
    return custom_basis_from_csv(text, filename, attribute)


def template_csv(attribute: Attribute) -> str:
    """A file of own questions to start from: the total, and each value; usable as it is."""
    values = attribute.values
    names = list(values.values if isinstance(values, Categories) else attribute.labels())
    total = "all"
    while total in names:
        total += " together"
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["question", *names])
    if len(names) > 1:
        lines.writerow([total, *("1" for _ in names)])
    for place, name in enumerate(names):
        lines.writerow([name, *("1" if place == other else "0" for other in range(len(names)))])
    return text.getvalue()


# ---- what is asked, in words


def examples(basis: Basis, attribute: Attribute) -> list[str]:
    """What up to three telling questions are called."""
    asked, n = query_matrix(basis, attribute), attribute.size
    match basis:
        case Ranges():
            pairs = ((n // 4, n // 2), (0, n // 3), (n // 2, n - 1))
            rows = [first * n - first * (first - 1) // 2 + last - first for first, last in pairs]
        case Hierarchy():
            groups = len(asked.labels()) - n
            rows = [0, min(1, groups), groups]
        case CustomBasis():
            rows = list(range(min(3, asked.n_rows)))
        case _:
            rows = [n // 4, n // 2, (3 * n) // 4]
    return [asked.label(row) for row in dict.fromkeys(rows) if row < asked.n_rows][:3]


def questions_in_words(basis: Basis, attribute: Attribute) -> str:
    """ "100 questions, such as “≤ 25”, “≤ 50” and “≤ 75”."."""
    quoted = [f"“{label}”" for label in examples(basis, attribute)]
    count = basis.n_rows(attribute)
    such = ", such as " if count > len(quoted) else ": "
    return f"{plural(count, 'question')}{such}{joined(quoted)}."


def order_in_words(basis: Basis, attribute: Attribute) -> str:
    """For categories, which have no order by themselves, the one that counts here; else ""."""
    by_width = isinstance(basis, Hierarchy) and bool(basis.widths)
    if not isinstance(attribute.values, Categories) or not (basis.kind in ORDERED or by_width):
        return ""
    labels = attribute.labels()
    listed = ", ".join(labels if len(labels) <= 4 else [*labels[:3], "…", labels[-1]])
    return f"Values count in the order of the schema: {listed}."


def answers_in_words(workload: Workload, position: int, record_noun: str) -> str:
    """What a table answers: "people with age ≤ a, by region (with its groups)"."""
    limits, by = [], []
    letters = iter(_LETTERS * 3)
    for place in workload.places(position):
        attribute = workload.domain.attributes[place]
        name, basis = attribute.name, workload.basis_of(position, place)
        is_number = not isinstance(attribute.values, Categories)
        up_to = " ≤ " if is_number else " up to "
        match basis:
            case Prefix():
                limits.append(f"{name}{up_to}{next(letters)}")
            case Ranges():
                limits.append(f"{name} from {next(letters)} to {next(letters)}")
            case Windows():
                ending = next(letters)
                limits.append(f"{name} in the {plural(basis.width, 'value')} up to {ending}")
            case Hierarchy():
                by.append(f"{name} ({_groups_in_words(basis)})")
            case CustomBasis():
                called = f" “{basis.name}”" if basis.name else ""
                by.append(f"own questions{called} on {name}")
            case _:
                by.append(name)
    words = record_noun + (f" with {joined(limits)}" if limits else "")
    words += (", by " if limits else " by ") + joined(by) if by else ""
    return words if limits or by else f"{record_noun} in all"


def example_table(workload: Workload, name: str, basis: Basis) -> int | None:
    """A small table of several attributes that asks one in this way; None where no table does."""
    place = workload.domain.position(name)
    if (place, basis) not in workload.attribute_bases:
        return None
    question = workload.attribute_bases.index((place, basis))
    found = np.flatnonzero(np.any(workload.attribute_basis_index == question, axis=1))
    if not len(found):
        return None
    wanted = np.minimum(np.abs(workload.orders[found] - 2), 3)
    return int(found[np.argmin(wanted)])


def _groups_in_words(basis: Hierarchy) -> str:
    if not basis.widths:
        return "with its groups"
    return f"single values and groups of {joined([f'{width:,}' for width in basis.widths])}"
