"""Rows of HTML with a bar for the publishable share, and a tick where it was before."""

from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from rpexplore.common.formatting import describe_share, rounded

# What is left out where there is little room has this class.
_WIDE = "wide"


def share_rows(frame: pd.DataFrame, record_noun: str, former: Sequence[float] = ()) -> str:
    """A table of HTML, one row a group of tables.

    frame: columns name, tables, margin_95; with expected counts also median_count and share, and
        maybe whole (tables that are publishable in full).
    former: the shares before the last change; empty where there are none
    """
    has_shares, has_whole = "share" in frame, "whole" in frame
    heads = [("Tables", ""), ("publishable in full" if has_whole else "number", _WIDE)]
    heads += [("median expected count", _WIDE)] if has_shares else []
    heads += [(f"margin of error ({record_noun})", "")]
    heads += [("publishable cells", "")] if has_shares else []
    head = "".join(f'<th scope="col" class="{kind}">{escape(text)}</th>' for text, kind in heads)
    body = []
    for index, row in enumerate(frame.to_dict("records")):
        whole = f"{row['whole']:,} of " if has_whole else ""
        cells = [
            f'<th scope="row">{escape(str(row["name"]))}</th>',
            f'<td class="{_WIDE}">{whole}{row["tables"]:,}</td>',
        ]
        if has_shares:
            cells.append(f'<td class="{_WIDE}">{rounded(row["median_count"], 2)}</td>')
        cells.append(f"<td>±{rounded(row['margin_95'], 3)}</td>")
        if has_shares:
            cells.append(f"<td>{_bar(row['share'], former[index] if former else None)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    return f'<table class="rows{" bars" if has_shares else ""}">{table}</table>'


def scenario_rows(frame: pd.DataFrame, record_nouns: Sequence[str]) -> str:
    """A table of HTML, one row a scenario: what it gives for the tables that all have.

    frame: of `analysis.scenarios.shared_tables.outcomes`. record_nouns: what each scenario counts
    """
    has_shares = not np.isnan(frame["share"].to_numpy()).all()
    has_targets = sum(frame["targets"].tolist()) > 0
    heads = [("Scenario", ""), ("budget", _WIDE), ("median table, 95 %", "")]
    heads += [("least accurate table, 95 %", _WIDE)]
    heads += [("targets", "")] if has_targets else []
    heads += [("publishable cells", "")] if has_shares else []
    head = "".join(f'<th scope="col" class="{kind}">{escape(text)}</th>' for text, kind in heads)
    body = []
    for row, noun in zip(frame.to_dict("records"), record_nouns, strict=True):
        cells = [
            f'<th scope="row">{escape(row["scenario"])}</th>',
            f'<td class="{_WIDE}">{escape(row["budget"])}</td>',
            f"<td>±{rounded(row['median_margin'], 3)} {escape(noun)}</td>",
            f'<td class="{_WIDE}">±{rounded(row["largest_margin"], 3)} {escape(noun)}<br>'
            f"<small>{escape(row['least_accurate'])}</small></td>",
        ]
        if has_targets:
            cells.append(f"<td>{_targets(row['targets'], row['missed'])}</td>")
        if has_shares:
            share = "not known" if np.isnan(row["share"]) else _bar(row["share"], None)
            cells.append(f"<td>{share}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    return f'<table class="rows{" bars" if has_shares else ""}">{table}</table>'


def _targets(targets: int, missed: int) -> str:
    """ "✗ 3 of 20 missed", "✓ all 20 met", "–"."""
    if not targets:
        return "–"
    return f"<b>✗ {missed:,} of {targets:,} missed</b>" if missed else f"✓ all {targets:,} met"


def _bar(share: float, former: float | None) -> str:
    tick = "" if former is None else f'<u style="left: calc({100 * former:.4g}% - 1px)"></u>'
    bar = f'<i><b style="width: {100 * share:.4g}%"></b>{tick}</i>'
    return f'<div class="bar">{bar}<span>{describe_share(share)}</span></div>'
