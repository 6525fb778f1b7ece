"""What the options of the command line are turned into: budgets, workloads, selections."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rpexplore.common.files import utf8_text
from rpexplore.errors import BudgetError, DomainError, RpexploreError, WorkloadError

if TYPE_CHECKING:
    from rpexplore.domain.attribute import Attribute
    from rpexplore.domain.domain import Domain
    from rpexplore.privacy.budget import Budget
    from rpexplore.workload.bases import CustomBasis
    from rpexplore.workload.workload import AttributeSet, Workload


def budget_from_options(
    records_per_person: int | None, instead: str, **parameters: str | None
) -> "Budget":
    """The budget, from parameters still in text, so that they are exact.

    instead: the option that finds one
    """
    from rpexplore.privacy.budget import Budget

    given = {name: text for name, text in parameters.items() if text is not None}
    if set(given) not in ({"rho"}, {"epsilon", "delta"}, {"mu"}, {"privacy_cost"}):
        options = " and ".join("--" + name.replace("_", "-") for name in given)
        raise BudgetError(
            "Give the budget in one way: --rho R, or --epsilon E with --delta D, or --mu M, or "
            f"--privacy-cost C, or have it found with {instead}; got {options or 'none of them'}."
        )
    return Budget(**given, max_records_per_person=records_per_person)


def unit_from_options(
    option: str, records_per_person: int | None, delta: str | None, **parameters: str | None
) -> "Budget":
    """A budget in the unit in which one that is looked for is stated: ε with a δ, else ρ.

    option: the one that asks to look for it, with which other parameters do not go
    """
    from rpexplore.privacy.budget import Budget

    given = [name for name, text in parameters.items() if text is not None]
    if given:
        raise BudgetError(f"{option} finds the budget; leave --{given[0].replace('_', '-')} out.")
    stated = {"rho": 1} if delta is None else {"epsilon": 1, "delta": delta}
    return Budget(**stated, max_records_per_person=records_per_person)


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
) -> "Workload":
    """The union of all tables that are asked for in any way, with weights, targets and bases."""
    from rpexplore.scenarios.basis_choice_text import (
        basis_choice_from_text,
        with_listed_basis_choices,
    )
    from rpexplore.workload.table_text import number_from_text, table_from_text, workload_from_csv
    from rpexplore.workload.targets import parse_target
    from rpexplore.workload.workload import Workload

    parts = [Workload.all_of_order(domain, order) for order in of_order]
    if up_to is not None:
        parts.append(Workload.all_up_to(domain, up_to))
    if at_most_cells is not None:
        parts.append(Workload.all_with_at_most(domain, cells=at_most_cells))
    if table:
        parts.append(Workload.of(domain, [table_from_text(domain, text) for text in table]))
    if tables is not None:
        parts.append(workload_from_csv(domain, text_of(tables), tables.name))
    if not parts:
        raise WorkloadError(
            "Say which tables: --up-to K, --of-order K, --at-most-cells N, --table A,B or "
            "--tables FILE."
        )
    united = parts[0]
    for part in parts[1:]:
        united |= part
    weights, targets = (
        _by_table(domain, options, name, example)
        for options, name, example in (
            (weight, "weight", "a number, such as age,sex=5"),
            (target, "target", "a target, such as age,sex=20 or age,sex=±50 at 95 %"),
        )
    )
    united = united.with_weights(
        {table: number_from_text(text, "weight") for table, text in weights.items()}
    )
    united = united.with_targets({table: parse_target(text) for table, text in targets.items()})
    return with_listed_basis_choices(
        united, [basis_choice_from_text(domain, text, _custom_basis_of) for text in basis]
    )


def chosen_from_options(domain: "Domain", options: Sequence[str]) -> "dict[str, list[float]]":
    """{attribute: question} of options such as age=18..24; either may hold an equals sign."""
    from rpexplore.domain.value_selection import product_query

    texts = _by_attribute(
        domain, options, "A question", "the values that count, such as age=18..24"
    )
    return product_query(domain, texts)


def other_from_options(domain: "Domain", options: Sequence[str]) -> Mapping[str, str]:
    """{attribute: value} of options such as region=R12; either may hold an equals sign."""
    return _by_attribute(
        domain, options, "--other", "the value that takes the rest, such as region=R12"
    )


def _by_attribute(
    domain: "Domain", options: Sequence[str], option: str, what: str
) -> dict[str, str]:
    """{attribute: text} of options such as region=R12; either may hold an equals sign."""
    found: dict[str, str] = {}
    for text in options:
        parts = text.split("=")
        splits = [("=".join(parts[:i]), "=".join(parts[i:])) for i in range(1, len(parts))]
        known = [(name, value) for name, value in splits if name in domain.names]
        if not known:
            raise DomainError(f"{option} {text!r} must be an attribute of the plan, =, and {what}.")
        name, value = known[0]
        if name in found:
            raise DomainError(f"{option} names {name!r} twice; name it once.")
        found[name] = value
    return found


def _by_table(
    domain: "Domain", options: Sequence[str], name: str, example: str
) -> "dict[AttributeSet, str]":
    """{table: text} of options such as age,sex=5."""
    from rpexplore.workload.table_text import table_from_text

    found: dict[AttributeSet, str] = {}
    for option in options:
        text, equals, wanted = option.rpartition("=")
        if not equals:
            raise WorkloadError(f"--{name} {option!r} must be a table, =, and {example}.")
        table = table_from_text(domain, text)
        if table in found:
            raise WorkloadError(f"--{name} names the table {text!r} twice; keep one of them.")
        found[table] = wanted
    return found


def _custom_basis_of(path: Path, attribute: "Attribute") -> "CustomBasis":
    """The own questions of a file."""
    from rpexplore.workload.custom_basis_file import read_custom_basis

    return read_custom_basis(bytes_of(path), path.name, attribute)


def text_of(path: Path) -> str:
    """The text of a file; `RpexploreError` if it cannot be read."""
    return utf8_text(bytes_of(path), path.name, RpexploreError)


def bytes_of(path: Path) -> bytes:
    """What a file holds; `RpexploreError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise RpexploreError(
            f"The file {str(path)!r} cannot be read ({error.strerror}); check the path."
        ) from None
