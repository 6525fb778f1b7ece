"""What the options of the command line are turned into: budgets, workloads, queries, records."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpexplore.cli.options import ExcessRecords
from rpexplore.common.files import file_bytes, utf8_text
from rpexplore.common.numbers import shown
from rpexplore.common.text import joined, singular_noun
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.errors import BudgetError, DomainError, RpexploreError, WorkloadError
from rpexplore.workload.bases import CustomBasis

if TYPE_CHECKING:
    from rpexplore.data.source import PersonRule, Source
    from rpexplore.domain.area_tree import AreaTree
    from rpexplore.domain.domain import AttributeSet, Domain
    from rpexplore.domain.record_layout import RecordLayout
    from rpexplore.privacy.budget import Budget
    from rpexplore.results.noisy_marginal import NoisyMarginal
    from rpexplore.workload.query_definitions import StatedQueries
    from rpexplore.workload.smooth_weights import SmoothWeights
    from rpexplore.workload.workload import Workload

_NUMBER = r"[0-9][0-9.eE+/-]*"
_FILE_AND_NUMBERS = re.compile(rf"(.+?):([a-z]+=)?({_NUMBER})(?::({_NUMBER}))?")


# ---- planning


def budget_from_options(
    parameters: Mapping[str, str | None],
    delta: str | None,
    records_per_person: int | None,
    neighbours: str | None = None,
    panel: tuple[str | None, int | None] = (None, None),
    unit_noun: str | None = None,
    distinct: str | None = None,
    *,
    find_smallest: bool,
) -> "Budget":
    """The budget, from parameters still in text, so that they are exact.

    find_smallest: whether --minimum-budget finds it; then one in the unit in which that is stated:
    ε with a δ, else ρ.
    """
    from rpexplore.privacy.budget import ADD_REMOVE, Budget

    given = {name: text for name, text in parameters.items() if text is not None}
    options = ["--" + name.replace("_", "-") for name in given]
    if find_smallest:
        if options:
            raise BudgetError(f"--minimum-budget finds the budget; leave {options[0]} out.")
        given = {"rho": "1"} if delta is None else {"epsilon": "1"}
    if delta is not None:
        given["delta"] = delta
        options.append("--delta")
    if set(given) == {"epsilon"}:
        raise BudgetError(
            f"--epsilon {given['epsilon']} needs a δ beside it; give --delta too, such as 1e-6."
        )
    if set(given) not in ({"rho"}, {"epsilon", "delta"}, {"mu"}, {"privacy_cost"}):
        raise BudgetError(
            "Give the budget in one way: --rho R, or --epsilon E with --delta D, or --mu M, or "
            "--privacy-cost C, or have it found with --minimum-budget; got "
            f"{' and '.join(options) or 'none of them'}."
        )
    period, most = panel
    if (period is None) != (most is None) or (most is not None and records_per_person is not None):
        raise BudgetError(
            "--period and --max-periods go together, in the place of --records-per-person: at most "
            "one record of a person in each period, and so many periods."
        )
    return Budget(
        **given,
        max_records_per_person=most if records_per_person is None else records_per_person,
        neighbours=neighbours or ADD_REMOVE,
        period=period,
        unit_noun=None if unit_noun is None else singular_noun(unit_noun),
        distinct=distinct,
    )


def with_exact_totals(
    budget: "Budget",
    domain: "Domain",
    exact: Sequence[str],
    neighbours: object,
    tree: "AreaTree | None",
) -> "Budget":
    """The budget with the totals of --exact.

    neighbours: what --neighbours says, if it is there; tree: the areas, if there are some
    """
    from rpexplore.planning.held_totals import total_from_text
    from rpexplore.privacy.budget import REPLACE, Budget

    if not exact:
        return budget
    if neighbours is not None and not budget.replaces:
        raise BudgetError(
            f"--exact {shown(exact[0])} keeps the number of records, and --neighbours add-remove "
            f"changes it; leave --neighbours out, or take {REPLACE}."
        )
    stated: dict[str, Any] = dict(budget.stated)
    return Budget(
        **stated,
        max_records_per_person=budget.max_records_per_person,
        period=budget.period,
        unit_noun=budget.unit_noun,
        distinct=budget.distinct,
        exact=[total_from_text(domain.with_levels, tree, text) for text in exact],
    )


def tables_of_sums(
    domain: "Domain",
    sums: Sequence[str] | None,
    means: Sequence[str] | None,
    by: Sequence[str] | None,
) -> list[str]:
    """The tables that --sum, --mean and --by ask for, as --table has them."""
    from rpexplore.workload.table_text import TOTAL, in_quotes, table_from_text

    given = [*(sums or []), *(means or [])]
    # The total is none: it is refused below.
    several = (table_from_text(domain, text) or [text] for text in given)
    names: list[str] = list(dict.fromkeys(chain.from_iterable(several)))
    if by and not names:
        raise WorkloadError("--by goes with --sum; say whose sums are wanted, or take --table.")
    for name in names:
        if domain.position(name) not in domain.amounts:
            having = [domain.names[index] for index in domain.amounts]
            remedy = f"the attributes of amounts are {joined(having)}"
            if not having:
                remedy = 'give it "bounds" in the codebook, such as [0, 200000]'
            raise WorkloadError(f"--sum {name!r} must name an attribute of amounts; {remedy}.")
    return [
        in_quotes(name) if others.strip() in ("", TOTAL) else f"{others},{in_quotes(name)}"
        for name in names
        for others in by or [TOTAL]
    ]


def workload_from_options(
    domain: "Domain",
    *,
    up_to: int | None,
    of_order: Sequence[int],
    at_most_cells: int | None,
    table: Sequence[str],
    tables: Path | None,
    weight: Sequence[str],
    target: Sequence[str],
    basis: Sequence[str],
    smooth_for: "SmoothWeights | None" = None,
) -> "Workload":
    """The union of all tables that are given in any way, with weights, targets and bases.

    smooth_for: the weights for smooth tables, if they are wanted; the small tables are then added
    """
    from rpexplore.scenarios.bases import basis_choice_from_text, with_listed_basis_choices
    from rpexplore.workload.table_text import table_from_text, weight_from_text, workload_from_csv
    from rpexplore.workload.targets import Target
    from rpexplore.workload.workload import Workload

    known = domain.with_levels
    parts = [Workload.all_of_order(domain, order) for order in of_order]
    if up_to is not None:
        parts.append(Workload.all_up_to(domain, up_to))
    if at_most_cells is not None:
        parts.append(Workload.all_with_at_most(domain, cells=at_most_cells))
    if table:
        parts.append(Workload.of(domain, [table_from_text(known, text) for text in table]))
    if tables is not None:
        parts.append(workload_from_csv(known, text_of(tables), tables.name))
    if not parts:
        raise WorkloadError(
            "Say which tables: --up-to K, --of-order K, --at-most-cells N, --table A,B or "
            "--tables FILE."
        )
    united = parts[0]
    for part in parts[1:]:
        united |= part
    if smooth_for is not None:
        united = smooth_for.weighted(united)
    weights = _by_table(known, weight, "weight", "a number, such as age,sex=5")
    for_others = [text for text in target if is_target(text)]
    targets = _by_table(
        known,
        [text for text in target if text not in for_others],
        "target",
        "a target, such as age,sex=20 or age,sex=±50 at 95 %",
    )
    united = united.with_weights({table: weight_from_text(text) for table, text in weights.items()})
    united = united.with_targets({table: Target.parse(text) for table, text in targets.items()})
    return with_listed_basis_choices(
        with_other_target(united, for_others),
        [basis_choice_from_text(known, text, _custom_basis_of) for text in basis],
    )


def with_other_target(workload: "Workload", texts: Sequence[str]) -> "Workload":
    """The workload with the target of a text for the tables that have none; one text at most."""
    import numpy as np

    from rpexplore.workload.targets import Target

    if len(texts) > 1:
        raise WorkloadError(
            f"--target {texts[1]!r} names no table, as --target {texts[0]!r} does; keep "
            "one of them for all tables that have no other target, or put a table and = before it."
        )
    if not texts:
        return workload
    without = np.flatnonzero(np.isnan(workload.targets)).tolist()
    other = Target.parse(texts[0])
    return workload.with_targets({workload.tables[row]: other for row in without})


def is_target(text: str) -> bool:
    """Whether a text is a target without a table."""
    from rpexplore.workload.targets import Target

    with suppress(WorkloadError):
        Target.parse(text)
        return True
    return False


def _by_table(
    domain: "Domain", options: Sequence[str], name: str, example: str
) -> "dict[AttributeSet, str]":
    """{table: text} of options such as age,sex=5."""
    from rpexplore.workload.table_text import split_at_table, table_from_text

    texts: dict[AttributeSet, str] = {}
    for option in options:
        if "=" not in option:
            raise WorkloadError(f"--{name} {option!r} must be a table, =, and {example}.")
        table_text, text = split_at_table(domain, option)
        table = table_from_text(domain, table_text)
        if table in texts:
            raise WorkloadError(f"--{name} names the table {table_text!r} twice; keep one of them.")
        texts[table] = text
    return texts


def _custom_basis_of(path: Path, attribute: "Attribute") -> "CustomBasis":
    return CustomBasis.read(_bytes_of(path), path.name, attribute)


# ---- lists of queries


def domain_of_counts(domain: "Domain", attributes: str | None) -> "Domain":
    """The domain of the attributes that are named, or else of all but amounts."""
    from rpexplore.workload.query_edits import chosen_domain
    from rpexplore.workload.table_text import table_from_text

    if attributes is not None:
        return chosen_domain(domain, table_from_text(domain, attributes))
    others = (name for index, name in enumerate(domain.names) if index not in domain.amounts)
    return chosen_domain(domain, others)


def queries_from_options(
    *,
    domain: "Domain",
    attributes: str | None,
    queries: Path | None,
    query: Sequence[str],
    target: str | None,
) -> "StatedQueries":
    """The own counts of a file, or one by one; options that do not fit are refused."""
    if (queries is None) == (not query):
        raise WorkloadError(
            "Give own counts in one way: --counts FILE, or --count 'adults: age >= 18 ± "
            "50', as often as needed."
        )
    from rpexplore.workload.query_definitions import conditions_of_text, stated_from_text
    from rpexplore.workload.query_files import conditions_of_csv, stated_from_csv
    from rpexplore.workload.targets import Target

    default = None if target is None else Target.parse(target)
    if queries is not None and queries.suffix.lower() == ".csv":
        content = _bytes_of(queries)
        conditions = conditions_of_csv(content, queries.name)
        domain = _domain_of_queries(domain, attributes, conditions)
        return stated_from_csv(domain, content, queries.name, default)
    text = "\n".join(query) if queries is None else text_of(queries)
    domain = _domain_of_queries(domain, attributes, conditions_of_text(text))
    return stated_from_text(domain, text, default)


def _domain_of_queries(
    domain: "Domain", attributes: str | None, conditions: Sequence[str]
) -> "Domain":
    """Of the attributes that are named, or else of those that the conditions name.

    For queries with coefficients of all that there are. Where a condition is refused as well, but
    for amounts of which no condition speaks: whoever reads the list says what is wrong, and in
    which line.
    """
    from rpexplore.workload.query_edits import chosen_domain, domain_of_conditions

    if attributes is not None or not conditions:
        return domain_of_counts(domain, attributes)
    try:
        return domain_of_conditions(domain, conditions)
    except WorkloadError:
        said = "\n".join(conditions)
        others = {domain.names[index] for index in domain.amounts}
        return chosen_domain(
            domain, (one for one in domain.names if one in said or one not in others)
        )


# ---- releases and their results


def source_from_options(
    data: Path | None,
    database: str | None,
    table: str | None,
    *,
    stream: bool = False,
    encoding: str | None = None,
    positions: Path | None = None,
) -> "Source":
    """The records: those of a path, or of a table in a database."""
    from rpexplore.data.engines.connections import connection_named
    from rpexplore.data.engines.source import DatabaseSource
    from rpexplore.data.files.source import FileSource
    from rpexplore.domain.record_layout import RecordLayout

    if (data is None) == (database is None):
        got = "neither" if data is None else "both"
        raise RpexploreError(
            f"Say where the records are in one way: DATA, or --database NAME; got {got}."
        )
    if (table is None) != (database is None):
        raise RpexploreError("--database NAME and --table TABLE go together; give both.")
    if encoding is not None and data is None:
        raise RpexploreError("--encoding is of files; leave it out with --database.")
    if positions is not None and data is None:
        raise RpexploreError("--positions is of files; leave it out with --database.")
    if database is not None and table is not None:
        return DatabaseSource(connection_named(database), table, stream)
    if stream:
        raise RpexploreError(
            "--stream goes with --database NAME: files are read in this process anyway; leave it "
            "out."
        )
    assert data is not None
    return FileSource(data, encoding, positions and RecordLayout.load(positions))


def person_rule_from_options(
    column: str | None, excess: ExcessRecords | None, order: str | None, most: int | None
) -> "PersonRule | None":
    """How many records of one person are counted; most: what the plan allows, None for a record."""
    from rpexplore.data.source import PersonRule

    if column is None:
        for name, value in (("--excess", excess), ("--person-order", order)):
            if value is not None:
                raise RpexploreError(f"{name} goes with --person-id COLUMN; give both, or neither.")
        return None
    if most is None:
        raise RpexploreError(
            "The plan protects one record, whoever it belongs to, so --person-id has nothing to "
            "see to; leave it out, or plan with --records-per-person M."
        )
    keep_first = excess is ExcessRecords.KEEP_FIRST
    if order is not None and not keep_first:
        raise RpexploreError("--person-order goes with --excess keep-first; give both, or neither.")
    return PersonRule(column, most, "keep first" if keep_first else "refuse", order)


def texts_by_attribute(
    domain: "Domain", options: Sequence[str], name: str, example: str, *, every: str = ""
) -> dict[str, str]:
    """{attribute: text} of options such as region=R12; either may hold an equals sign.

    every: stands for all attributes, if it is not empty
    """
    names = [*domain.names, *filter(None, [every])]
    texts: dict[str, str] = {}
    for option in options:
        attributes = [text for text in names if option.startswith(f"{text}=")]
        if not attributes:
            attribute, sign, _ = option.partition("=")
            if attribute and sign:
                domain.position(attribute)  # raises and names those that there are
            raise DomainError(f"{name} {option!r} must be an attribute, =, and {example}.")
        attribute = min(attributes, key=len)
        if attribute in texts:
            raise DomainError(f"{name} names {attribute!r} twice; name it once.")
        texts[attribute] = option.removeprefix(f"{attribute}=")
    return texts


def questions(
    domain: "Domain", options: Sequence[str]
) -> tuple[list[list[str]], list[dict[str, str]]]:
    """The questions of options, as they were typed and as {attribute: text}.

    Of A=VALUES each all are one question; if one text names several attributes, each text is one.
    """
    from rpexplore.domain.values import question_from_text

    if not any(f" {name}=" in option for option in options for name in domain.names):
        example = "the values that count, such as age=18..24; name none to count all records"
        return [list(options)], [texts_by_attribute(domain, options, "A=VALUES", example)]
    return [[option] for option in options], [
        question_from_text(domain, option) for option in options
    ]


def with_groups(domain: "Domain", options: Sequence[str], encoding: str | None = None) -> "Domain":
    """The domain with the groups of options such as region=regions.hrc."""
    from rpexplore.domain.hierarchy_file import HierarchyFile, with_hierarchy

    files = texts_by_attribute(domain, options, "--groups", "a file such as region=regions.hrc")
    for attribute, file in files.items():
        hierarchy = HierarchyFile.parse(text_of(Path(file), encoding), Path(file).name)
        domain = with_hierarchy(domain, attribute, hierarchy)
    return domain


def _attribute_and_file(option: str) -> tuple[str, str]:
    name, sign, file = option.partition("=")
    if not (name and sign and file):
        raise DomainError(
            f"--public-values {option!r} must be an attribute, =, and a file of records, such as "
            "region=records.csv."
        )
    return name, file


def attributes_to_fill(options: Sequence[str]) -> list[str]:
    """The attributes whose values `with_public_values` takes from records."""
    return [_attribute_and_file(option)[0] for option in options]


def with_public_values(
    domain: "Domain",
    options: Sequence[str],
    encoding: str | None = None,
    layout: "RecordLayout | None" = None,
) -> "Domain":
    """The domain with values that occur in records, of options such as region=records.csv.

    Attributes that it has not yet are added; the others get these values in place of theirs.
    layout: of files of fixed width
    """
    if not options:
        return domain

    from dataclasses import replace

    from rpexplore.data.files.columns import read_column_values
    from rpexplore.data.files.record_files import file_kind
    from rpexplore.domain.domain import completed, is_unfinished, label_from_records

    for option in options:
        name, file = _attribute_and_file(option)
        of_file = layout if file_kind(file) == "fixed" else None
        read = read_column_values(file, [name], encoding=encoding, layout=of_file)
        if name in read.refused:
            raise DomainError(
                f"The values of {name!r} are not taken from {file!r}: {read.refused[name]}; list "
                "them in the codebook."
            )
        values = Categories(read.values[name])
        if name in domain:
            old = domain[name]
            label = label_from_records(old.label)
            if is_unfinished(old):
                new = replace(completed(old, values), label=label)
            else:
                new = replace(old, values=values, label=label, groups=(), levels=())
            domain = domain.with_attributes(new if one is old else one for one in domain)
        else:
            added = Attribute(name, values, label_from_records(""))
            domain = domain.with_attributes([*domain, added])
    return domain


def with_not_stated(domain: "Domain", names: Sequence[str]) -> "Domain":
    """The domain in which these attributes, or all (*), have a value for records without any."""
    from rpexplore.domain.recodes import with_not_stated

    chosen = list(domain.names) if "*" in names else [domain[name].name for name in names]
    return with_not_stated(domain, chosen)


def with_recodes(domain: "Domain", options: Sequence[str], encoding: str | None = None) -> "Domain":
    """The domain with the recodes of options such as municipality=old-new.csv."""
    from rpexplore.domain.recodes import recode_of_file, with_recode

    files = texts_by_attribute(domain, options, "--recode", "a file such as region=old-new.csv")
    for attribute, file in files.items():
        recode = recode_of_file(text_of(Path(file), encoding), Path(file).name)
        domain = with_recode(domain, attribute, recode)
    return domain


def noisy_from_options(domain: "Domain", options: Sequence[str]) -> "list[NoisyMarginal]":
    """The noisy marginals of options such as census.csv:25 or census.csv:25:0.02."""
    from rpexplore.results.noisy_marginal import NoisyMarginal, variance_of_noise

    marginals = []
    for option in options:
        parts = _FILE_AND_NUMBERS.fullmatch(option)
        if parts is None:
            raise RpexploreError(
                f"--noisy {option!r} must be a CSV file, :, and the variance of its noise, such as "
                "census.csv:25, or its law and scale, such as census.csv:laplace=2; behind "
                "another : may stand the ρ that it spent."
            )
        file, law, variance, rho = parts.groups()
        if law:
            variance = variance_of_noise(law.removesuffix("="), variance)
        marginals.append(NoisyMarginal.load(domain, file, variance, rho=rho))
    return marginals


# ---- files


def text_of(path: Path, encoding: str | None = None) -> str:
    return utf8_text(_bytes_of(path), path.name, RpexploreError, encoding)


def _bytes_of(path: Path) -> bytes:
    return file_bytes(path, f"The file {str(path)!r}", RpexploreError)
