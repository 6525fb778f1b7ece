"""docs/performance.md lists what is refused, with the numbers that the code refuses it by."""

from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
# What begins a row -> the numbers in it, in order, as module and constant.
LIMITS = {
    "attributes": ["domain.attribute.MAX_ATTRIBUTES"],
    "values of an attribute": [
        "domain.attribute.MAX_SIZE",
        "workload.bases.base.MAX_VALUES",
        "workload.bases.custom.MAX_CUSTOM_VALUES",
        "workload.bases.custom.MAX_CUSTOM_QUERIES",
    ],
    "levels of an attribute; values that all levels group": [
        "domain.levels.MOST_LEVELS",
        "domain.levels.MOST_GROUPED",
    ],
    "impossible combinations; values that they name": [
        "domain.values._MOST_COMBINATIONS",
        "domain.values._MOST_MARKED",
    ],
    "areas of a tree, on all its levels": [
        "domain.area_tree.MAX_AREAS",
        "domain.area_levels.MAX_DEPTH",
    ],
    "expected counts: attributes; cells": [
        "domain.expected_counts.MAX_ATTRIBUTES",
        "domain.expected_counts.MAX_CELLS",
    ],
    "cells of attributes that public tables connect": ["domain.public_tables.MAX_TOGETHER"],
    "tables of a workload": ["workload.attribute_sets.MAX_TABLES"],
    "subsets of tables (incidences of residuals in tables)": [
        "planning.mechanism.subsets.MAX_INCIDENCES",
        "planning.mechanism.subsets.MAX_LARGEST_ORDER",
    ],
    "attributes at several levels in one table": ["planning.mechanism.closure._MOST_TREES"],
    "counts of a list of your own counts": ["workload.query_list.MAX_QUERIES"],
    "groups of cells that its conditions tell apart": ["workload.query_list.MAX_ATOMS"],
    "k² (m + n), for m counts, n groups or cells, and k the smaller of both; beyond, m n": [
        "workload.query_list.MAX_WORK",
        "workload.query_list.MAX_ENTRIES",
    ],
    "cells of a list with coefficients; its coefficients": [
        "workload.query_list.MOST_CELLS",
        "workload.query_list.MOST_GIVEN",
    ],
    "signs of a condition": ["workload.conditions.MAX_LENGTH"],
    "own counts for neighbours that replace a record: groups of cells": [
        "planning.replaced_counts.MOST_KINDS"
    ],
    "own counts beside exact totals: combinations of values": [
        "planning.counts_moves.MOST_COMBINATIONS"
    ],
    "rounds of an adaptive plan": ["planning.adaptive._MOST_ROUNDS"],
    "cells of one table of a release": [
        "releases.large_tables.MAX_SLICED_CELLS",
        "releases.large_tables.MAX_TABLE_CELLS",
    ],
    "cells that a database or cluster counts at a time": ["data.engines.session._MOST_CELLS"],
    "bins of an attribute that a database counts": ["data.engines.coding._MOST_BINS"],
    "a workbook: tables; cells": ["results.workbook.MAX_TABLES", "results.workbook.MAX_CELLS"],
    "tables of a page for readers": ["results.formats.readers_page.MOST_TABLES"],
    "synthetic records; values of all their attributes together": [
        "results.synthetic.records_folder.MOST_RECORDS",
        "results.synthetic.targets.MOST_VALUES",
    ],
    "a simulation of model-based estimates: records / cells of all tables": [
        "results.rehearsal.MOST_RECORDS",
        "results.rehearsal.MOST_CELLS",
    ],
    "whole counts of an area: cells of all attributes together": [
        "results.estimates.area_cells.MOST_CELLS"
    ],
    "nonnegative tables with known totals that overlap: combinations": [
        "estimation.exact_totals._MOST_FITTED"
    ],
    "a map of areas: shapes; bytes": [
        "analysis.area_map.MOST_SHAPES",
        "analysis.area_map._MOST_BYTES",
    ],
}


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_that_is_refused_is_the_documented_one(what):
    text = PAGE.read_text("utf-8").partition("## What is refused")[2]
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {what} | ")]
    rest = row.removeprefix(f"| {what} | ")
    for name in LIMITS[what]:
        module, _, constant = name.rpartition(".")
        number = f"{getattr(import_module(f'rpexplore.{module}'), constant):,}"
        assert number in rest, f"{name} is {number}"
        rest = rest.partition(number)[2]
