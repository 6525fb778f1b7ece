"""The columns of a table of results as a page lists them, by their roles."""

import pandas as pd

from rpexplore.domain.result_schema import NOTE, Role, Schema
from rpexplore.figures.chart import COLUMNS, Column


def columns_of(frame: pd.DataFrame, figure: str = "count") -> dict[str, Column]:
    """How each column of a table is shown, by its role: labels, figures, intervals.

    figure: what a cell holds, such as a count
    """
    schema = Schema.of(frame)
    kind = "noisy"
    if schema.is_processed:
        kind = "processed"
    if schema.is_smooth:
        kind = "smooth" if schema.has_unbiased else "estimated"
    biased = " (biased)" if schema.is_processed else ""
    unbiased = "unbiased " if schema.has_unbiased else ""
    holds = "" if schema.has_unbiased or not schema.is_smooth else " (if the model holds)"
    heads: dict[Role, Column] = {
        "value": Column(f"{kind} {figure}{biased}", "estimate"),
        "estimate": Column(f"noisy {figure} (unbiased)", "estimate"),
        "error": COLUMNS["standard_error"],
        "model_error": Column("model-based error", term="Model-based error"),
        "margin": COLUMNS["margin_95"],
        "lower": Column(f"{unbiased}95 % interval from{holds}", "estimate"),
        "upper": Column(f"{unbiased}95 % interval to{holds}", "estimate"),
        "cv": Column("model-based CV" if schema.is_smooth else "CV", "share"),
        "target": Column("target σ"),
        "quality": Column("quality", "text"),
        "publishable": Column("publishable", "text"),
        "flag": Column("target met", "text"),
        "note": Column(f"what the {'processed' if unbiased else kind} {figure} is", "text"),
    }
    columns = {
        column.name: heads.get(column.role, Column(column.name, "name"))
        for column in schema.columns
    }
    if any(column.name == NOTE.name and column.role == "note" for column in schema.columns):
        columns[NOTE.name] = Column("note", "text")
    return columns
