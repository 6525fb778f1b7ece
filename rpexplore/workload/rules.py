"""Rule: which cells of a table must be accurate, and how many people or cells must be in these.

"CV <= 20% for 90% of people in each table": at least 90 % of the people of every table must be in
cells whose noise has a coefficient of variation of at most 20 %. Whether a table meets a rule
depends on its counts, of which planning knows what is public: a forecast turns a rule into a
target, the largest standard error of each table (docs/mathematics.md §19).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from rpexplore.common.json_fields import check_keys, list_of, lists, text_of
from rpexplore.common.numbers import shown
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.table_text import Table, table_from_text, texts_of_tables
from rpexplore.workload.targets import Number, plain
from rpexplore.workload.workload import Workload

PEOPLE, CELLS = "people", "cells"
MEDIAN, SURELY = "median", "surely"
CERTAINTIES = (MEDIAN, SURELY)
EXAMPLE = "CV<=20% for 90% of people in each table"

_MOST_SIGNS = 10_000  # of all rules together
_PERCENT = r"([0-9]+(?:[.,][0-9]+)?)\s*(?:%|per ?cent)"
_FORM = re.compile(
    rf"\s*CV\s*(?:<=|≤|<|of at most)?\s*{_PERCENT}\s*for\s*(?:at least\s*)?{_PERCENT}"
    r"\s*of\s*(?:the\s*)?(people|persons|records|cells)\s+in\s+(.+?)\s*(?:,\s*(surely))?\s*",
    re.IGNORECASE | re.DOTALL,
)
_EACH = re.compile(r"(?:each|every) table|all tables", re.IGNORECASE)
# Outside quotation marks, in which names may hold it.
_SEMICOLON = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')
_AND_IN = re.compile(r'\s+and\s+in\s+(?=(?:[^"]*"[^"]*")*[^"]*$)', re.IGNORECASE)


@dataclass(frozen=True, init=False)
class Rule:
    """What share of the people, or cells, of tables must be in cells of at most some CV.

    cv         largest coefficient of variation of the noise of a cell: 0.2 is 20 %
    share      of the people, or cells, of a table: 0.9 is 90 %
    of         "people" or "cells"
    tables     the tables that must meet it, by their attributes; (): each table
    certainty  "median": for the counts in the middle of the forecast; "surely": for the lower end
               of its range, which 95 % of the populations are above

    Raises `WorkloadError` for a CV that is not above 0, a share above 1 and the like.

    Example:
        >>> str(Rule("0.2", "0.9", tables=[("age", "sex")]))
        'CV <= 20% for 90% of people in age,sex'
    """

    cv: Decimal
    share: Decimal
    of: str
    tables: tuple[Table, ...]
    certainty: str

    def __init__(
        self,
        cv: Number,
        share: Number,
        of: str = PEOPLE,
        tables: Iterable[AttributeSet] = (),
        certainty: str = MEDIAN,
    ) -> None:
        cv, share = _decimal(cv, "CV"), _decimal(share, "share")
        if not 0 < cv <= 1:
            raise WorkloadError(
                f"The CV of a rule must be above 0 % and at most 100 %, got {_percent(cv)}; "
                "20 % is usual."
            )
        if not 0 < share <= 1:
            raise WorkloadError(
                f"The share of a rule must be above 0 % and at most 100 %, got {_percent(share)}; "
                "90 % is usual."
            )
        if of not in (PEOPLE, CELLS):
            raise WorkloadError(
                f"A rule must be about people or cells, got {shown(of)}; write it like {EXAMPLE}."
            )
        if certainty not in CERTAINTIES:
            raise WorkloadError(
                f"The certainty of a rule must be {MEDIAN} or {SURELY}, got {shown(certainty)}."
            )
        named = tuple((name,) if isinstance(name, str) else tuple(name) for name in tables)
        for name, value in {
            "cv": cv, "share": share, "of": of, "tables": tuple(dict.fromkeys(named)),
            "certainty": certainty,
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def text(self) -> str:
        """The rule for people: "CV of at most 20 % for 90 % of people in each table"."""
        return self._said(f"CV of at most {_percent(self.cv)}", f"{_percent(self.share)}")

    def __str__(self) -> str:
        """As it is typed; `parse_rule` undoes it."""
        return self._said(f"CV <= {_percent(self.cv, '')}", _percent(self.share, ""))

    def _said(self, cv: str, share: str) -> str:
        where = "each table"
        if self.tables:
            where = " and in ".join(
                next(iter(texts_of_tables(Domain.from_sizes(dict.fromkeys(table, 2)), [table])))
                for table in self.tables
            )
        surely = f", {SURELY}" if self.certainty == SURELY else ""
        return f"{cv} for {share} of {self.of} in {where}{surely}"

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file, tables by their attributes; `from_json` undoes it."""
        numbers = {"cv": f"{self.cv:f}", "share": f"{self.share:f}"}
        tables = [list(table) for table in self.tables]
        return {**numbers, "of": self.of, "tables": tables, "certainty": self.certainty}

    @classmethod
    def from_json(cls, content: Any) -> "Rule":
        """The rule that `to_json` wrote; raises what `refusing` takes for anything else."""
        check_keys(content, ("cv", "share", "of", "tables", "certainty"), "a rule")
        texts = {name: text_of(content, name) for name in ("cv", "share", "of", "certainty")}
        tables = [
            [text_of({"name": name}, "name") for name in table]
            for table in lists(list_of(content, "tables"), "table of a rule")
        ]
        return cls(**texts, tables=tables)

    def fitted(self, workload: Workload) -> "Rule":
        """The rule with its tables in the order of the workload.

        Raises `WorkloadError` for a table that is not in the workload, `DomainError` for an
        unknown attribute.
        """
        known = workload.domain
        places = []
        for table in self.tables:
            place = workload.find(known.with_levels.positions(table))
            if place is None:
                raise WorkloadError(
                    f"The rule {str(self)!r} is about a table that is not asked for, "
                    f"{known.with_levels.describe(known.with_levels.positions(table))}; ask for it."
                )
            places.append(place)
        tables = tuple(workload.tables[place] for place in sorted(set(places)))
        return Rule(self.cv, self.share, self.of, tables, self.certainty)

    def places(self, workload: Workload) -> list[int]:
        """The tables of a workload that must meet it, ascending."""
        if not self.tables:
            return list(range(len(workload)))
        return sorted(workload.position(table) for table in self.tables)

    def implies(self, other: "Rule") -> bool:
        """Whether every plan that meets this rule meets the other."""
        return (
            self.of == other.of
            and self.cv <= other.cv
            and self.share >= other.share
            and CERTAINTIES.index(self.certainty) >= CERTAINTIES.index(other.certainty)
            and (not self.tables or (bool(other.tables) and set(other.tables) <= {*self.tables}))
        )


def parse_rule(domain: Domain, text: str, certainty: str = MEDIAN) -> Rule:
    """The rule that a text states; `WorkloadError` for anything else, with an example.

    "in each table", or in named ones: "in age,sex", "in age and in sex,region". With ", surely"
    behind, it must be met at the lower end of the forecast; certainty: of rules without.

    Example:
        >>> sizes = Domain.from_sizes({"age": 100, "sex": 2})
        >>> parse_rule(sizes, "CV<=5% for 95% of cells in sex").tables
        (('sex',),)
    """
    match = _FORM.fullmatch(text) if len(text) <= _MOST_SIGNS else None
    if match is None:
        raise WorkloadError(
            f"The rule must be written like {EXAMPLE}, or in age,sex for one table, got "
            f"{shown(text)!r}."
        )
    cv, share, of, where, surely = match.groups()
    tables: list[Table] = []
    if not _EACH.fullmatch(where):
        tables = [table_from_text(domain.with_levels, name) for name in _AND_IN.split(where)]
    return Rule(
        _of_percent(cv),
        _of_percent(share),
        CELLS if of.lower() == CELLS else PEOPLE,
        tables,
        SURELY if surely else certainty,
    )


def rules_from_text(domain: Domain, text: str) -> tuple[Rule, ...]:
    """The rules of a text, separated by semicolons outside quotation marks; () for none."""
    if len(text) > _MOST_SIGNS:  # each semicolon is looked at with all that is behind it
        raise WorkloadError(
            f"Rules can have {_MOST_SIGNS:,} characters, got {len(text):,}; state fewer."
        )
    return tuple(parse_rule(domain, one) for one in _SEMICOLON.split(text) if one.strip())


def rules_of(
    workload: Workload, stated: Sequence[Rule | str], certainty: str = MEDIAN
) -> tuple[Rule, ...]:
    """Rules as they are stated, or typed, for the tables of a workload.

    certainty: of those that are typed without

    Raises `WorkloadError` for one about a table that is not asked for, and for two of which one
    says all that the other does.
    """
    if isinstance(stated, str):
        raise WorkloadError("Rules must be a list, got a text; put it in square brackets.")
    rules = [
        (parse_rule(workload.domain, one, certainty) if isinstance(one, str) else one).fitted(
            workload
        )
        for one in stated
    ]
    for number, rule in enumerate(rules):
        for other in rules[:number]:
            if rule.implies(other) or other.implies(rule):
                strict, loose = (rule, other) if rule.implies(other) else (other, rule)
                if strict == loose:
                    raise WorkloadError(f"The rule {str(rule)!r} is stated twice; state it once.")
                raise WorkloadError(
                    f"The rules {str(loose)!r} and {str(strict)!r} contradict each other: tables "
                    "that meet the first can miss the second; keep one of them."
                )
    return tuple(rules)


def _decimal(value: Number, noun: str) -> Decimal:
    try:
        number = Decimal(repr(float(value)) if isinstance(value, float) else value)
        if not number.is_finite():
            raise InvalidOperation
    except (TypeError, ValueError, InvalidOperation):
        raise WorkloadError(
            f"The {noun} of a rule must be a number such as 0.2, got {shown(value)}."
        ) from None
    return number.normalize()


def _of_percent(text: str) -> Decimal:
    return Decimal(text.replace(",", ".")) / 100


def _percent(share: Decimal, space: str = " ") -> str:
    return f"{plain((100 * share).normalize() + 0)}{space}%"
