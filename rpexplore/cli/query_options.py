"""The options of the verbs for lists of queries, and the lists that they are turned into."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rpexplore.cli.plan_inputs import bytes_of, text_of
from rpexplore.errors import WorkloadError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain
    from rpexplore.queries.presets import Preset
    from rpexplore.queries.query_list import QueryList

_ATTRIBUTES = (
    "The attributes that the queries are about, separated by commas; else those that the "
    "conditions name, or for a CSV file all of the codebook. At most about 1,000 combinations of "
    "their values."
)
_QUERIES = (
    "The queries: a text file with one a line, written as for --query, or a .csv file with the "
    "columns name, condition and target, or as `rpexplore queries template` begins one."
)
_QUERY = (
    "One query: name: condition ± margin, such as 'adults: age >= 18 ± 50'. Behind @ a target may "
    "be a standard error (@ 20) or a share of a count (@ 5 % of 1000). Repeat it for more."
)
_TARGET = "The target of queries that have none of their own: ±50, 20, or 5 % of 1000."
_MINIMUM_BUDGET = (
    "Instead of a budget: the smallest one that meets all targets, stated as ε where there is a "
    "--delta, else as ρ."
)


class PresetName(StrEnum):
    """The presets, in the order of `query_presets.PRESETS`."""

    REDISTRICTING = "redistricting"
    AGE_PYRAMID = "age-pyramid"
    CUMULATIVE_AGES = "cumulative-ages"
    IDENTITY_PLUS_SUM = "identity-plus-sum"


def _option(metavar: str, text: str):
    return typer.Option(metavar=metavar, help=text)


Codebook = Annotated[
    Path | None, _option("FILE", "Table Schema (.json), or attribute,value,label (.csv).")
]
CodebookOfTemplate = Annotated[
    Path, _option("FILE", "Table Schema (.json), or attribute,value,label (.csv).")
]
Attributes = Annotated[str | None, _option("A,B", _ATTRIBUTES)]
Queries = Annotated[Path | None, _option("FILE", _QUERIES)]
Query = Annotated[list[str] | None, _option("TEXT", _QUERY)]
Target = Annotated[str | None, _option("T", _TARGET)]
Chosen = Annotated[
    PresetName | None,
    typer.Option(help="A well-known list instead; `rpexplore queries presets` tells about them."),
]
MinimumBudget = Annotated[bool, typer.Option("--minimum-budget", help=_MINIMUM_BUDGET)]
PlanOut = Annotated[Path, _option("FILE", "Where the plan goes.")]
TemplateOut = Annotated[Path, _option("FILE", "Where the template goes: a .csv file.")]


def named_presets() -> "list[tuple[PresetName, Preset]]":
    from rpexplore.queries.presets import PRESETS

    return list(zip(PresetName, PRESETS, strict=True))


def domain_from_options(codebook: Path, attributes: str | None) -> "Domain":
    """The domain of the attributes that are named, or else of all."""
    from rpexplore.domain.domain import Domain
    from rpexplore.queries.edits import chosen_domain
    from rpexplore.workload.table_text import table_from_text

    domain = Domain.load(codebook)
    names = domain.names if attributes is None else table_from_text(domain, attributes)
    return chosen_domain(domain, names)


def queries_from_options(
    *,
    codebook: Path | None,
    attributes: str | None,
    queries: Path | None,
    query: Sequence[str],
    target: str | None,
    preset: PresetName | None,
) -> "QueryList":
    """The queries of a preset, of a file, or one by one; options that do not fit are refused."""
    if preset is not None:
        if (codebook, attributes, queries, target) != (None,) * 4 or query:
            raise WorkloadError(
                "A preset has attributes, queries and targets of its own; give --preset alone, or "
                "--codebook with your own queries."
            )
        return dict(named_presets())[preset].queries()
    if codebook is None:
        raise WorkloadError(
            "Say what the queries are about: --codebook FILE, with --attributes A,B; or take a "
            "--preset."
        )
    if (queries is None) == (not query):
        raise WorkloadError(
            "Give the queries in one way: --queries FILE, or --query 'adults: age >= 18 ± 50', as "
            "often as needed."
        )
    from rpexplore.queries.csv_files import conditions_of_csv, stated_from_csv
    from rpexplore.queries.definitions import conditions_of_text, stated_from_text
    from rpexplore.workload.targets import parse_target

    default = None if target is None else parse_target(target)
    if queries is not None and queries.suffix.lower() == ".csv":
        content = bytes_of(queries)
        named = conditions_of_csv(content, queries.name)
        domain = _domain_of_queries(codebook, attributes, named)
        return stated_from_csv(domain, content, queries.name, default).queries
    text = "\n".join(query) if queries is None else text_of(queries)
    domain = _domain_of_queries(codebook, attributes, conditions_of_text(text))
    return stated_from_text(domain, text, default).queries


def _domain_of_queries(
    codebook: Path, attributes: str | None, conditions: Sequence[str]
) -> "Domain":
    """Of the attributes that are named, or else of those that the conditions name.

    For queries with coefficients of all that there are.
    """
    from rpexplore.domain.domain import Domain
    from rpexplore.queries.edits import domain_of_conditions

    if attributes is not None or not conditions:
        return domain_from_options(codebook, attributes)
    try:
        return domain_of_conditions(Domain.load(codebook), conditions)
    except WorkloadError as error:
        raise WorkloadError(f"{error} --attributes A,B says which ones it is about.") from None
