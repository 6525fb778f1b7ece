"""What a report tells about the schema: the attributes, and all of their values."""

import pandas as pd

from rpexplore.analysis.provenance import found_in_words
from rpexplore.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain import Domain
from rpexplore.export.section import Facts, Numbers, Section
from rpexplore.words import plural

FIRST_VALUES = 4
MOST_VALUES = 5_000  # in the appendix, over all attributes


def schema(domain: Domain) -> Section:
    """The attributes, each with its values in short."""
    rows = [
        {
            "name": attribute.name,
            "label": attribute.label,
            "values": attribute.size,
            "listed": _values_in_short(attribute),
        }
        for attribute in domain.attributes
    ]
    words = {"name": "attribute", "label": "label", "values": "values", "listed": "which"}
    if not any(attribute.label for attribute in domain.attributes):
        del words["label"]
    names = found_in_words(domain)
    return Section(
        "Schema",
        (
            f"The plan knows {plural(len(domain), 'attribute')} of a record. The promise takes "
            "these values to be public knowledge: what is taken from the records themselves is "
            "not protected. The appendix lists values that are cut short here.",
            *([f"Taken from the records were the values of {names}."] if names else []),
        ),
        (Numbers(pd.DataFrame(rows), words),),
    )


def all_values(domain: Domain) -> Section:
    """The values of every attribute in full, as far as a document can hold them."""
    rows, left = [], MOST_VALUES
    for attribute in domain.attributes:
        texts, values = (), attribute.values
        if isinstance(values, Integers):
            texts = (_values_in_short(attribute),)
        elif attribute.size <= left:
            left -= attribute.size
            texts = ("; ".join(_values(attribute)),)
        else:
            texts = (
                f"{attribute.size:,} values, too many to list here; they are in codebook.json and "
                "in plan.json.",
            )
        rows.append((attribute.name, texts))
    return Section("Appendix: all values", (), (Facts(rows),), folded=True)


def _values(attribute: Attribute) -> list[str]:
    """Each value as it stands in the records, with its label where that says more."""
    values = attribute.values
    if not isinstance(values, Categories):
        return attribute.labels()
    return [
        value if label == value else f"{value} ({label})"
        for value, label in zip(values.values, values.labels, strict=True)
    ]


def _values_in_short(attribute: Attribute) -> str:
    values = attribute.values
    if isinstance(values, Integers):
        whole = f"whole numbers {values.minimum:,} to {values.maximum:,}"
        return whole if values.step == 1 else f"{whole}, in groups of {values.step:,}"
    if isinstance(values, Bins) and values.size > FIRST_VALUES:
        first, last = values.label(0), values.label(values.size - 1)
        return f"intervals from “{first}” up to “{last}”"
    first = [values.label(place) for place in range(min(values.size, FIRST_VALUES))]
    more = [f"and {values.size - FIRST_VALUES:,} more"] if values.size > FIRST_VALUES else []
    return "; ".join([*first, *more])
