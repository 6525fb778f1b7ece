"""The texts of exported tables with amounts: sums, means and weighted counts, in every language."""

from collections.abc import Mapping

from rpexplore.domain.amounts import Amounts
from rpexplore.domain.domain import Domain
from rpexplore.domain.result_schema import RECORDS, Role
from rpexplore.releases.items import Item
from rpexplore.results.formats.languages import Language

_OF_MEANS: Mapping[Role, str] = {
    "value": "mean_meaning",
    "error": "mean_error_meaning",
    "lower": "mean_interval_meaning",
    "upper": "mean_interval_meaning",
}


def amounts_in(domain: Domain | None, item: Item) -> dict[str, Amounts]:
    """The attributes of amounts and weights of a table, by their names."""
    attributes = () if domain is None else domain.attributes
    return {
        one.name: one.values
        for one in attributes
        if one.name in item.attributes and isinstance(one.values, Amounts)
    }


def meaning_of_amounts(
    language: Language, role: Role, amounts: Mapping[str, Amounts], item: Item
) -> str:
    """What a column of figures of a table with amounts is; "" where it is as in other tables."""
    if role != "value":
        return language.text(_OF_MEANS[role]) if item.is_of_means and role in _OF_MEANS else ""
    has_weights = any(values.are_weights for values in amounts.values())
    key = "mean_meaning"
    if not item.is_of_means:
        has_sums = not all(values.are_weights for values in amounts.values())
        key = {
            (True, False): "sums_meaning",
            (False, True): "weighted_meaning",
            (True, True): "weighted_sums_meaning",
        }[has_sums, has_weights]
    return " ".join([language.text(key), clamping_sentences(language, amounts)])


def clamping_sentences(language: Language, amounts: Mapping[str, Amounts]) -> str:
    """What is done to amounts and weights beyond their limits, and to products of both."""
    sentences = []
    for values in amounts.values():
        low, high = (
            language.number(f"{limit.normalize():,f}") for limit in (values.minimum, values.maximum)
        )
        unit = f" {values.unit}" if values.unit else ""
        key = "clamped_weights" if values.are_weights else "clamped_amounts"
        sentences.append(language.text(key, low=low, high=high, unit=unit))
    of_weights = [values for values in amounts.values() if values.are_weights]
    for values in amounts.values():
        for weights in of_weights if not values.are_weights else ():
            if (most := values.most_rounded(weights)) is not None:
                unit = f" {values.unit}" if values.unit else ""
                number = language.number(f"{most.normalize():f}")
                sentences.append(language.text("rounded_products", most=number, unit=unit))
    return " ".join(sentences)


def label_of_amounts(language: Language, values: Amounts, text: str, record_noun: str) -> str:
    """What a row of sums or means is called; the labels of missing values stay as they are."""
    of_unit = {"unit": f" ({values.unit})" if values.unit else ""}
    names = {
        RECORDS: record_noun,
        "weighted": language.text("weighted"),
        f"mean{of_unit['unit']}": language.text("mean_of", **of_unit),
        values.sum_label: language.text(
            "weighted_count" if values.are_weights else "sum_of", **of_unit
        ),
    }
    return text if text in values.missing_labels else names.get(text, text)
