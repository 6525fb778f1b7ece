"""Survey weights on the command line: which column has them, and which tables stay unweighted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from rpexplore.cli.commands import Option
from rpexplore.errors import WorkloadError

if TYPE_CHECKING:
    from rpexplore.cli.plan_inputs import PartsAsked
    from rpexplore.domain.domain import Domain
    from rpexplore.workload.workload import Workload

WeightColumn = Annotated[
    str | None,
    Option(
        "--weight-column",
        metavar="W",
        help="The column of the records with their survey weights: all tables are weighted counts. "
        "Goes with --max-weight, unless the codebook has the column with its bounds and "
        '"weights": true. Own counts beside them must add up the weights: sum(W) where ….',
    ),
]
MaxWeight = Annotated[
    str | None,
    Option(
        "--max-weight",
        metavar="N",
        help="The largest weight that counts, chosen without a look at the records; larger ones "
        "count as it, those below 0 as 0. The error of a weighted count is so many times that of a "
        "count.",
    ),
]
WeightDecimals = Annotated[
    int | None,
    Option(
        "--weight-decimals",
        metavar="N",
        min=0,
        max=6,
        help="To how many decimals weights are rounded, half to even; 3 if not given.",
    ),
]
Unweighted = Annotated[
    list[str] | None,
    Option(
        "--unweighted",
        metavar="A,B",
        help="A table, one of those asked for, that counts records (or sums amounts as they are), "
        "and is not weighted. Repeat it for more.",
    ),
]


@dataclass(frozen=True)
class Weighting:
    """What the options say of weights.

    column      of the weights; None: tables count records
    unweighted  tables, as they are typed
    """

    column: str | None
    maximum: str | None
    decimals: int | None
    unweighted: Sequence[str]

    def domain(self, domain: "Domain", not_weighted: Mapping[str, Any]) -> "Domain":
        """The codebook with the weights among its attributes.

        not_weighted: options that ask for what cannot be weighted, and what was given

        Raises `WorkloadError` for options that do not fit together, or the codebook.
        """
        from rpexplore.domain.amounts import WEIGHT_DECIMALS, Amounts

        if self.column is None:
            options = {
                "--max-weight": self.maximum is not None,
                "--weight-decimals": self.decimals is not None,
                "--unweighted": self.unweighted,
            }
            for option in (option for option, given in options.items() if given):
                raise WorkloadError(
                    f"{option} goes with --weight-column, the column of the weights; give both."
                )
            return domain
        for option in (option for option, given in not_weighted.items() if given):
            raise WorkloadError(
                f"{option} does not go with --weight-column, as only tables can be weighted; make "
                "a plan of its own for it, or leave one of them out."
            )
        if self.column not in domain.names:
            if self.maximum is None:
                raise WorkloadError(
                    f"--weight-column {self.column!r} goes with --max-weight N, the largest weight "
                    "that counts; choose it without a look at the records."
                )
            decimals = WEIGHT_DECIMALS if self.decimals is None else self.decimals
            return domain.with_weights(self.column, self.maximum, decimals)
        values = domain[self.column].values
        if not (isinstance(values, Amounts) and values.are_weights):
            raise WorkloadError(
                f"--weight-column {self.column!r} is an attribute of the codebook that has no "
                'weights; give it bounds and "weights": true there.'
            )
        if self.maximum is not None or self.decimals is not None:
            raise WorkloadError(
                f"The codebook says the limits and decimals of {self.column!r}: "
                f"{values.description}; leave --max-weight and --weight-decimals out."
            )
        return domain

    def of(self, asked: "PartsAsked") -> "PartsAsked":
        """What is asked for, with weighted tables; `WorkloadError` where there is more."""
        from rpexplore.workload.table_text import table_from_text

        if self.column is None:
            return asked
        tables, areas = asked.tables, asked.areas
        in_areas = None if areas is None else areas.tables
        domain = next(one.domain for one in (tables, in_areas) if one is not None)
        stay = [table_from_text(domain.with_levels, text) for text in self.unweighted]

        def unweighted(own: "Workload | None", other: "Workload | None") -> list[Sequence[str]]:
            """Those of one part; and those of neither, which are refused as that one's."""
            return [table for table in stay if _holds(own, table) or not _holds(other, table)]

        if tables is not None:
            tables = tables.weighted_by(self.column, unweighted=unweighted(tables, in_areas))
        if areas is not None:
            areas = areas.weighted_by(self.column, unweighted=unweighted(in_areas, asked.tables))
        return replace(asked, tables=tables, areas=areas)

    def note(self, domain: "Domain", asked: "PartsAsked") -> str | None:
        """That tables are not weighted though the codebook has weights; None otherwise."""
        in_areas = None if asked.areas is None else asked.areas.tables
        is_weighted = any(one.is_weighted.any() for one in (asked.tables, in_areas) if one)
        if is_weighted or not domain.weights:
            return None
        name = domain.names[domain.weights[0]]
        return f"Tables count records, unweighted; --weight-column {name} weights them."


def _holds(workload: "Workload | None", table: Sequence[str]) -> bool:
    return workload is not None and workload.find(workload.domain.positions(table)) is not None
