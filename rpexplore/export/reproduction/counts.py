"""How own counts are made again: from a CSV file of queries beside the script."""

import numpy as np

from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.export.reproduction.part import PartFile, Reproduction
from rpexplore.export.reproduction.python_source import literal
from rpexplore.planning.counts.query_plan import QueryPlan
from rpexplore.queries.csv_files import csv_of_coefficients, csv_of_conditions
from rpexplore.queries.definitions import StatedQueries
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.table_text import texts_of_tables

QUERIES = "queries.csv"


def counts_again(plan: QueryPlan, scenario: Scenario, codebook: Domain) -> Reproduction:
    """How own counts are made again. codebook: of the whole plan, which lies beside the script"""
    (attributes,) = texts_of_tables(codebook, [plan.domain.names])
    return Reproduction(
        asked="counts()",
        definitions=(
            "def counts() -> rp.QueryList:\n"
            '    """The queries, each with its target."""\n'
            '    book = rp.Domain.load(Path(__file__).with_name("codebook.json"))\n'
            f"    domain = rp.Domain(tuple(book[name] for name in {literal(plan.domain.names)}))\n"
            f"    file = Path(__file__).with_name({literal(QUERIES)})\n"
            "    return stated_from_csv(domain, file.read_bytes(), file.name).queries\n"
        ),
        imports=["from rpexplore.queries.csv_files import stated_from_csv"],
        needs_path=True,
        verb=["rpexplore", "plan", "codebook.json"],
        options=[["--counts-of", attributes], ["--counts", QUERIES]],
        files={QUERIES: PartFile(_csv(_stated(plan, scenario)), "the queries with their targets")},
    )


def _stated(plan: QueryPlan, scenario: Scenario) -> StatedQueries:
    """The queries of a plan as the scenario has them typed, if it has these."""
    queries, stated = plan.queries, scenario.query_list
    if (
        stated is not None
        and stated.queries.domain == queries.domain
        and stated.queries.names == queries.names
        and np.array_equal(stated.queries.coefficients, queries.coefficients)
        and np.array_equal(stated.queries.targets, queries.targets)
    ):
        return stated
    return StatedQueries.of(queries)


def _csv(stated: StatedQueries) -> str:
    try:
        return csv_of_conditions(stated)
    except WorkloadError:  # not every query is a condition
        return csv_of_coefficients(stated)
