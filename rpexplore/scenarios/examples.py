"""Examples: projects that open finished, each over invented records.

The codebook, the expected counts and the records of an example lie in the folder of the sample
data, where the generator writes them; its scenarios are made here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rpexplore.common.webapp_files import sample_data_folder
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting
from rpexplore.scenarios.workload_request import WorkloadRequest


@dataclass(frozen=True)
class Example:
    """A question of a curator, with all that is needed to answer it.

    key            of its files in the folder of the sample data: "household"
    title          what a gallery calls it
    summary        what the records are, in one sentence
    question       what its scenarios answer
    record_noun    what one record stands for, in the plural
    records_file   name of the file with the records
    scenarios      its scenarios, from one with codebook, expected counts and record noun only
    person_column  the column that says whose a record is; "" where each is of another person
    order_column   the column by which the records of a person are ordered; "" where there is none
    """

    key: str
    title: str
    summary: str
    question: str
    record_noun: str
    records_file: str
    scenarios: Callable[[Scenario], tuple[Scenario, ...]]
    person_column: str = ""
    order_column: str = ""

    @property
    def records(self) -> Path:
        """The file with the records. Raises `RpexploreError` if there are no sample data."""
        return sample_data_folder() / self.records_file

    @cached_property
    def domain(self) -> Domain:
        """The codebook."""
        return Domain.load(sample_data_folder() / f"{self.key}.json")

    @cached_property
    def expected(self) -> ExpectedCounts:
        """Public counts: those of an earlier year, as invented as the records."""
        path = sample_data_folder() / f"{self.key}-expected.csv"
        return expected_counts_from_csv(self.domain, path.read_bytes(), path.name)

    def project(self) -> Project:
        """The scenarios, the first of them open."""
        base = Scenario(self.domain, record_noun=self.record_noun, expected=self.expected)
        return Project(self.scenarios(base))


def _household(base: Scenario) -> tuple[Scenario, ...]:
    # Tables by region are read by twelve regional governments.
    regional = GroupSetting(("region",), weight=2)
    budget = Budget(epsilon=1, delta="1e-6")
    return (
        base.replaced(
            name="Tables up to 2-way",
            note="All pairs of attributes, those with region at twice the weight.",
            request=WorkloadRequest("up_to", order=2, groups=(regional,)),
            budget=budget,
        ),
        base.replaced(
            name="Tables up to 3-way",
            note="Three attributes at a time, for the same budget.",
            request=WorkloadRequest("up_to", order=3, groups=(regional,)),
            budget=budget,
        ),
    )


EXAMPLES = (
    Example(
        "household",
        "Household survey",
        "50,001 people of a household survey, with eleven attributes from age to tenure.",
        "Are three-way tables publishable at ε = 1?",
        "people",
        "household.csv",
        _household,
    ),
)


def example_with(columns: Iterable[str]) -> Example | None:
    """The first example whose records have all these columns; None if there is none."""
    wanted = set(columns)
    return next((example for example in EXAMPLES if wanted <= set(example.domain.names)), None)
