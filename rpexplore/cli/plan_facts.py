"""What the command line tells about plans, their tables and ledgers: plain values and texts."""

import math
from collections.abc import Iterable
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import least_accurate_first, of_tables
from rpexplore.cli.console import one_line, text_table
from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.formatting import rounded, text_of_path
from rpexplore.domain.domain import Domain
from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.ledger import Account, LedgerEntry
from rpexplore.releases.marginal_estimate import Answer
from rpexplore.scenarios.basis_choices import basis_choices_of
from rpexplore.scenarios.scenario import has_uniform_reference
from rpexplore.workload.table_text import list_titles, texts_of_tables
from rpexplore.workload.table_titles import titles
from rpexplore.workload.workload import Workload

DELTAS = ("1e-6", "1e-9", "1e-12")
_KINDS = {"Categories": "categories", "Integers": "whole numbers", "Bins": "bins"}
_FIRST_VALUES = 4


def attribute_facts(domain: Domain) -> list[dict[str, Any]]:
    """Each attribute in plain values, with the labels of its first values."""
    return [
        {
            "name": attribute.name,
            "label": attribute.label,
            "kind": _KINDS[type(attribute.values).__name__],
            "values": attribute.size,
            "first_values": [
                attribute.values.label(index) for index in range(min(attribute.size, _FIRST_VALUES))
            ],
        }
        for attribute in domain.attributes
    ]


def attribute_table(domain: Domain) -> str:
    """The attributes as a text table."""
    rows = [("name", "label", "kind", "values", "first values")]
    for fact in attribute_facts(domain):
        more = ["…"] if fact["values"] > _FIRST_VALUES else []
        first = ", ".join([*fact["first_values"], *more])
        rows.append((fact["name"], fact["label"], fact["kind"], f"{fact['values']:,}", first))
    return text_table(rows, "<<<><")


def plan_facts(plan: Plan) -> dict[str, Any]:
    """A plan in a few plain values; exact numbers are texts, as in the plan file."""
    certificate = plan.certificate
    return {
        "sha256": plan.sha256,
        "table_count": len(plan.workload),
        "residual_count": len(plan.closure),
        "unit": plan.budget.unit,
        "rho": exact_text(plan.rho),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "epsilon_by_delta": {delta: plan.epsilon(delta) for delta in DELTAS},
        "loss": {"description": plan.loss.description, "value": certificate.loss_value},
        "lower_bound": certificate.lower_bound,
        "gap": certificate.gap,
        "asked": asked_facts(plan.workload),
        "uniform_reference": has_uniform_reference(plan),
    }


def asked_facts(workload: Workload) -> list[dict[str, Any]]:
    """How attributes are asked that are asked other than by single values, in plain values.

    tables: those in which it is so; None for all that have the attribute and are not listed.
    """
    return [
        {
            "attribute": basis_choice.attribute,
            "basis": basis_choice.basis.kind,
            "words": basis_choice.basis.describe(workload.domain[basis_choice.attribute]),
            "tables": [list(table) for table in basis_choice.tables] or None,
        }
        for basis_choice in basis_choices_of(workload)
    ]


def asked_text(plan: Plan) -> str:
    """How attributes are asked, for reading; single values where nothing is said."""
    rows = [
        f"  {one_line(fact['attribute'])}: {one_line(fact['words'])}"
        + (f", in {one_line(list_titles(fact['tables']))}" if fact["tables"] else "")
        for fact in asked_facts(plan.workload)
    ]
    spread = (
        ["  Uniform reference distribution (ResidualPlanner+)"]
        if has_uniform_reference(plan)
        else []
    )
    return "\n".join(["Asked other than by single values", *rows, *spread])


def answer_facts(answer: Answer) -> dict[str, float]:
    """An answer with its accuracy, in plain values."""
    return {
        "value": answer.value,
        "standard_error": answer.standard_error,
        "lower_95": answer.lower_95,
        "upper_95": answer.upper_95,
    }


def table_facts(tables: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of `Plan.tables` in plain values; a missing target is None."""
    return [
        {name: None if value != value else value for name, value in row.items()}
        for row in tables.to_dict("records")
    ]


def accuracy_table(plan: Plan, count: int) -> str:
    """So many of a plan's tables as a text table, the least accurate first.

    Weights and targets are shown where there are any, and the least accurate cell where cells of a
    table differ.
    """
    tables = of_tables(plan).head(count)
    differ = "worst_standard_error" in tables
    columns = {
        "table": tables["table"].tolist(),
        "cells": [f"{cells:,.0f}" for cells in tables["cells"]],
        "typical standard error" if differ else "standard error": [
            rounded(error, 4, zeros=True) for error in tables["standard_error"]
        ],
        "95 % within ±": [rounded(margin, 4, zeros=True) for margin in tables["margin_95"]],
    }
    if differ:
        worst = tables["worst_standard_error"]
        columns["worst cell"] = [rounded(error, 4, zeros=True) for error in worst]
    if np.any(plan.workload.weights != 1):
        columns["weight"] = [f"{weight:g}" for weight in tables["weight"]]
    if not np.all(np.isnan(plan.workload.targets)):
        targets = tables["target"].tolist()
        columns["target"] = ["" if math.isnan(target) else f"{target:g}" for target in targets]
        columns["met"] = tables["met"].tolist()
    if np.any(plan.workload.required):
        required = plan.workload.required[least_accurate_first(plan)[:count]]
        columns["required"] = ["required" if must else "" for must in required.tolist()]
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    return text_table(rows, "<" + ">" * (len(columns) - 1))


def csv_of_tables(plan: Plan, tables: pd.DataFrame) -> str:
    """Rows of `Plan.tables` as CSV, which `table_lists.workload_from_csv` reads as a workload.

    Whether targets are required is there where some are; how they are asked, and their best and
    worst
    cell, where cells of a table can differ.
    """
    texts = list(texts_of_tables(plan.workload.domain, tables["attributes"]))
    frame = tables.assign(attributes=texts)
    if np.any(plan.workload.required):
        required = plan.workload.required[tables.index.to_numpy()]
        frame = frame.assign(required=np.where(required, "yes", "no"))
    if plan.workload.is_marginals:
        frame = frame.drop(columns=["worst_standard_error", "best_standard_error"])
    else:
        frame.insert(1, "asked", titles(plan.workload, tables.index.to_numpy()))
    return frame.to_csv(index=False, lineterminator="\n")


def amount(rho: Fraction, mode: str = "up") -> str:
    """An amount of ρ to 6 digits: what is spent rounded up, what may be spent down."""
    return f"ρ = {rounded(rho, 6, mode)}"


def announcement(plan: ReleasePlan, account: Account, cap_rho: str | None) -> str:
    """What a run of the plan will be charged, and what was spent on the data before."""
    factor, cap = plan.budget.records_factor, account.cap_record_rho
    noted = "none in the ledger" if cap is None else amount(cap * factor, "down")
    return "\n".join(
        [
            f"Plan      SHA-256 {plan.sha256}",
            f"Protects  {plan.budget.unit}; each ρ below is for that",
            f"Cost      {amount(plan.rho)} for this run, charged when it starts",
            f"Spent     {amount(account.spent_record_rho * factor)} on this data so far",
            f"Cap       {noted if cap_rho is None else f'ρ = {cap_rho}, as given'}",
        ]
    )


def booked_since(before: Account, after: Account, plan: ReleasePlan, output: Path) -> Fraction:
    """ρ for the plan's unit that its run into this folder has been charged between two looks."""
    written = text_of_path(output.resolve())
    rho = sum(
        (
            run.record_rho
            for run in after.runs[len(before.runs) :]
            if (run.plan_sha256, run.output) == (plan.sha256, written)
        ),
        Fraction(0),
    )
    return rho * plan.budget.records_factor


def account_facts(account: Account, factor: int) -> dict[str, Any]:
    """What a ledger says in total, exact, for a unit that counts `factor` times a record."""
    cap = account.cap_record_rho
    return {
        "spent_rho": exact_text(account.spent_record_rho * factor),
        "cap_rho": None if cap is None else exact_text(cap * factor),
    }


def run_facts(runs: Iterable[LedgerEntry]) -> list[dict[str, Any]]:
    """Each run of a ledger in plain values."""
    return [{**asdict(run), "record_rho": exact_text(run.record_rho)} for run in runs]


def account_text(account: Account) -> str:
    """What a ledger holds on a dataset, for reading."""
    cap = account.cap_record_rho
    allowed = "none" if cap is None else f"{amount(cap, 'down')} for one record"
    text = "\n".join(
        [
            f"Data   {one_line(account.dataset)}",
            f"Spent  {amount(account.spent_record_rho)} for one record",
            f"Cap    {allowed}",
        ]
    )
    if not account.runs:
        return text
    rows = [("run", "started", "charged", "state", "plan SHA-256", "output")]
    for run in account.runs:
        plan, charged = run.plan_sha256[:12] + "…", amount(run.record_rho)
        rows.append((str(run.id), run.started, charged, run.state, plan, run.output))
    return f"{text}\n\n{text_table(rows, '><<<<<')}"
