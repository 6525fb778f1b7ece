"""Where values come from: public knowledge, the records themselves, or nowhere yet."""

from collections.abc import Iterable

from rpexplore.common.csv_text import begins_formula
from rpexplore.common.exact_numbers import shown_few
from rpexplore.common.formatting import joined
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.domain.domain import Domain

FOUND_IN_RECORDS = "values found in the records"  # in a label, so that every file says it
_MOST_NAMED = 5

# A single value stands in for those that are to come: an attribute of one value changes no plan.
TO_COMPLETE = Categories(("(to be completed)",))


def label_from_records(label: str) -> str:
    """A label that says as well that the values were found in records."""
    if FOUND_IN_RECORDS in label:
        return label
    return f"{label} ({FOUND_IN_RECORDS})" if label else FOUND_IN_RECORDS


def describe_attributes_from_records(*domains: Domain) -> str:
    """Attributes with values from records: "age and sex", "a, b, c, d, e and 3 more"; or ""."""
    attributes = [attribute for domain in domains for attribute in domain]
    names = list(
        dict.fromkeys(
            attribute.name
            for attribute in attributes
            if FOUND_IN_RECORDS in attribute.label and not is_unfinished(attribute)
        )
    )
    if len(names) > _MOST_NAMED:
        names = [*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED:,} more"]
    return joined(names)


def except_from_records(*domains: Domain) -> str:
    """The exception to "no records were used", as the sentence's end; "" where there is none."""
    names = describe_attributes_from_records(*domains)
    if not names:
        return ""
    return (
        f", except the values of {names}, which were taken from the records and are not protected"
    )


def texts_like_formulas(attributes: Iterable[Attribute]) -> list[str]:
    """Names, values and labels that a spreadsheet would take for formulas, each once."""
    texts: list[str] = []
    for attribute in attributes:
        texts.append(attribute.name)
        if isinstance(attribute.values, Categories):
            texts += [*attribute.values.values, *attribute.values.labels]
    return list(dict.fromkeys(filter(begins_formula, texts)))


def formulas_warning(domain: Domain) -> str | None:
    """A warning about texts from records that spreadsheets take for formulas; None for none."""
    taken = [attribute for attribute in domain if FOUND_IN_RECORDS in attribute.label]
    if not (texts := texts_like_formulas(taken)):
        return None
    return (
        f"From the records come {shown_few(texts)}, which a spreadsheet that opens a CSV file "
        "takes for formulas; change the codebook, or have them escaped (--escape-formulas)."
    )


def is_unfinished(attribute: Attribute) -> bool:
    """Whether the attribute still waits for its values."""
    return attribute.values == TO_COMPLETE


def unfinished(domain: Domain) -> list[str]:
    """The names of the attributes that still wait for their values."""
    return [attribute.name for attribute in domain if is_unfinished(attribute)]
