"""The columns of a table of the results, and the name of its file."""

import re
from collections.abc import Sequence

import pandas as pd

from rpexplore.domain.result_schema import Role, Schema
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.postprocessing.publication import Publication


def columns_of(frame: pd.DataFrame) -> dict[str, Column]:
    """How each column of a table is shown, by its role: labels, counts, intervals."""
    schema = Schema.of(frame)
    kind = "noisy"
    if schema.has("note"):
        kind = "processed"
    if schema.is_smooth:
        kind = "smooth" if schema.has_unbiased else "estimated"
    biased = " (biased)" if schema.is_processed else ""
    unbiased = "unbiased " if schema.has_unbiased else ""
    holds = "" if schema.has_unbiased or not schema.is_smooth else " (if the model holds)"
    heads: dict[Role, Column] = {
        "value": Column(f"{kind} count{biased}", "estimate"),
        "estimate": Column("noisy count (unbiased)", "estimate"),
        "error": COLUMNS["standard_error"],
        "model_error": Column("model-based error", term="Model-based error"),
        "margin": COLUMNS["margin_95"],
        "lower": Column(f"{unbiased}95 % interval from{holds}", "estimate"),
        "upper": Column(f"{unbiased}95 % interval to{holds}", "estimate"),
        "cv": Column("model-based CV" if schema.is_smooth else "CV", "share"),
        "target": Column("target σ"),
        "publishable": Column("publishable", "text"),
        "flag": Column("target met", "text"),
        "note": Column(f"what the {'processed' if unbiased else kind} count is", "text"),
    }
    return {
        column.name: heads.get(column.role, Column(column.name, "name"))
        for column in schema.columns
    }


def file_of(names: Sequence[str], publication: Publication) -> str:
    """What to call a downloaded table: "age_sex.csv", as in the folder of a release.

    "age_sex-publishable.csv" where other cells are left empty.
    """
    parts = (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in names or ("total",))
    kind = "-publishable" if publication.leave_empty else ""
    return f"{'_'.join(filter(None, parts))[:80] or 'table'}{kind}.csv"
