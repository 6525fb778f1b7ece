"""The design of a survey as people type it: 1.8, age,sex=2.1, 1%."""

from collections.abc import Sequence
from dataclasses import replace

from rpexplore.common.text import needed_number_of, number_text
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.domain.survey import SurveyDesign
from rpexplore.errors import WorkloadError
from rpexplore.workload.table_text import split_at_table, table_from_text, texts_of_tables


def design_from_texts(
    domain: Domain, effects: Sequence[str], weight_cv: float | None, fraction: str | None
) -> SurveyDesign | None:
    """The design of a survey; None if nothing is stated.

    effects: design effects, "1.8" of all tables or "age,sex=2.1" of one; weight_cv: of the weights,
    instead of a design effect of all tables; fraction: the sampling fraction, "1%" or "0.01"

    Raises `RpexploreError` for a text that says none of these.
    """
    if not effects and weight_cv is None and fraction is None:
        return None
    of_all = [text for text in effects if "=" not in text]
    if len(of_all) + (weight_cv is not None) > 1:
        raise WorkloadError(
            "Give one design effect for all tables: a number such as 1.8, or the coefficient of "
            "variation of the weights."
        )
    own: dict[AttributeSet, float] = {}
    for text in (text for text in effects if "=" in text):
        named, number = split_at_table(domain.with_levels, text)
        table = table_from_text(domain.with_levels, named)
        if table in own:
            raise WorkloadError(f"The table {named!r} has two design effects; keep one.")
        own[table] = needed_number_of(number, f"The design effect of {named}")
    design = SurveyDesign(
        needed_number_of(of_all[0], "The design effect") if of_all else 1.0,
        tuple((tuple(table), effect) for table, effect in own.items()),
        0.0 if fraction is None else share_of_text(fraction, "The sampling fraction"),
    )
    if weight_cv is None:
        return design
    return replace(design, design_effect=SurveyDesign.from_weights(weight_cv).design_effect)


def effect_texts(domain: Domain, design: SurveyDesign) -> list[str]:
    """The design effects as `design_from_texts` reads them."""
    tables = [frozenset(names) for names, _ in design.of_tables]
    ordered = [tuple(domain.with_levels.in_order(table)) for table in tables]
    texts = texts_of_tables(domain.with_levels, ordered)
    own = zip(texts, (effect for _, effect in design.of_tables), strict=True)
    return [
        number_text(design.design_effect),
        *(f"{table}={number_text(effect)}" for table, effect in own),
    ]


def share_of_text(text: str, name: str) -> float:
    """The share that a text states: "1%" and "0.01" are 0.01."""
    number = needed_number_of(text.strip().removesuffix("%").strip(), name)
    return number / 100 if text.strip().endswith("%") else number
