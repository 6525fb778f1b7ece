"""Examples: projects that open finished, each over invented records."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from rpexplore.common.installation import sample_data_folder
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.bases import Hierarchy
from rpexplore.workload.targets import CV, Target
from rpexplore.workload.workload import Workload

# The codebook, the expected counts and the records of an example lie in the folder of the sample
# data, where the generator writes them; its scenarios are made here.


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

    @property
    def scenario(self) -> Scenario:
        """Codebook, expected counts and names, with nothing chosen yet."""
        return Scenario(
            self.domain,
            record_noun=self.record_noun,
            expected=self.expected,
            survey=self.title,
        )

    def project(self) -> Project:
        """The scenarios, the first of them open."""
        return Project(self.scenarios(self.scenario))


def _household(base: Scenario) -> tuple[Scenario, ...]:
    # Tables by region are read by twelve regional governments.
    regional = GroupSetting(("region",), weight=2)
    budget = Budget(epsilon=1, delta="1e-6")
    without_age = tuple(name for name in base.domain.names if name != "age")
    return (
        base.replaced(
            name="Up to 2-way, by single years of age",
            note="All pairs of attributes; tables by region at twice the weight.",
            request=WorkloadRequest(order=2, groups=(regional,)),
            budget=budget,
        ),
        base.replaced(
            name="Up to 3-way, without age",
            note="Three attributes at a time for the same budget: without single years of age.",
            request=WorkloadRequest(order=3, only=without_age, groups=(regional,)),
            budget=budget,
        ),
    )


def _redistricting(base: Scenario) -> tuple[Scenario, ...]:
    at_every_level = BasisChoice("precinct", Hierarchy())
    # Districts are drawn by who may vote.
    adults = GroupSetting(("voting_age",), weight=4)
    required_by_law = (
        ("precinct",),
        ("precinct", "race"),
        ("precinct", "hispanic"),
        ("precinct", "race", "voting_age"),
        ("precinct", "hispanic", "voting_age"),
        ("precinct", "quarters"),
    )
    budget = Budget(rho="0.1")
    return (
        base.replaced(
            name="Tables for redistricting",
            note="Six tables by precinct, district and county; those by voting age first.",
            request=WorkloadRequest(
                "listed",
                listed=required_by_law,
                groups=(adults,),
                basis_choices=(at_every_level,),
            ),
            budget=budget,
        ),
        base.replaced(
            name="All tables",
            note="Every combination of the five attributes for the same budget.",
            request=WorkloadRequest(order=5, groups=(adults,), basis_choices=(at_every_level,)),
            budget=budget,
        ),
    )


def _labour_force(base: Scenario) -> tuple[Scenario, ...]:
    required = (
        TableSetting(("region", "status"), target=_required(10, 130)),
        TableSetting(("region", "sex", "status"), target=_required(15, 65)),
        TableSetting(("sex", "age_group", "status"), target=_required(10, 115)),
        TableSetting(("education", "status"), target=_required(3, 500)),
        TableSetting(("sex", "industry"), target=_required(5, 450)),
    )
    regional = GroupSetting(("region",), weight=2)
    loss = SumWithinTargets()
    return (
        base.replaced(
            name="Required by law",
            note="The tables that the law requires, at the smallest budget that meets its targets.",
            request=WorkloadRequest(
                "listed", listed=tuple(one.attributes for one in required), settings=required
            ),
            loss=loss,
            budget=Budget(rho="0.0111"),
        ),
        base.replaced(
            name="All up to 3-way",
            note="Every table of up to three attributes; the targets of the law are still met.",
            request=WorkloadRequest(order=3, groups=(regional,), settings=required),
            loss=loss,
            budget=Budget(epsilon=1, delta="1e-6"),
        ),
    )


def _required(percent: int, unemployed: int) -> Target:
    """A required coefficient of variation of so many unemployed people."""
    return Target(percent, CV, count=unemployed, required=True)


def _hospital_stays(base: Scenario) -> tuple[Scenario, ...]:
    diagnoses = GroupSetting(("diagnosis",), weight=3)
    base = base.replaced(request=WorkloadRequest(order=2, groups=(diagnoses,)))
    return (
        base.replaced(
            name="Up to 3 stays of a patient",
            note="Of each patient the first 3 stays are counted, 88 % of all in the year before.",
            budget=Budget(epsilon=2, delta="1e-6", max_records_per_person=3),
        ),
        base.replaced(
            name="Up to 10 stays of a patient",
            note="Every stay is counted; no patient has more than 10.",
            budget=Budget(epsilon=2, delta="1e-6", max_records_per_person=10),
        ),
    )


EXAMPLES = (
    Example(
        "household",
        "Household survey",
        "50,000 people in a household survey, with eleven attributes from age to tenure.",
        "Which is publishable at ε = 1: pairs with single years of age, or three-way tables "
        "without them?",
        "people",
        "household.csv",
        _household,
    ),
    Example(
        "redistricting",
        "Redistricting tables",
        "101,190 people of a province in 90 precincts, within districts, within counties.",
        "How accurate are adults by race in a precinct, and what do further tables cost them?",
        "people",
        "redistricting.csv.gz",
        _redistricting,
    ),
    Example(
        "labour-force",
        "Labour-force survey",
        "40,000 respondents of 15 and more, with accuracies that a law requires.",
        "Which budget do the targets of the law need, and what do all other tables cost?",
        "people",
        "labour-force.csv.gz",
        _labour_force,
    ),
    Example(
        "hospital-stays",
        "Health register",
        "35,533 hospital stays in a year, up to ten of one patient.",
        "Count every stay with more noise, or the first three of each patient with less?",
        "stays",
        "hospital-stays.csv.gz",
        _hospital_stays,
        person_column="patient",
        order_column="admitted",
    ),
)


def without_invented_counts(scenario: Scenario, domain: Domain) -> Scenario:
    """The scenario without expected counts and name of an example, unless `domain` is its codebook.

    They are invented, and say nothing about anybody's own records.
    """
    titles = [example.title for example in EXAMPLES if domain != example.domain]
    if scenario.survey in titles:
        scenario = scenario.replaced(survey="")
    invented = [example.expected for example in EXAMPLES if domain != example.domain]
    if scenario.expected in invented:
        public = [table for table in scenario.public if table.counts not in invented]
        scenario = scenario.replaced(expected=None, public=tuple(public))
    return scenario


def example_for(domain: Domain, columns: Iterable[str]) -> Example | None:
    """The example whose records could be those of a plan; None if there is none.

    columns: what the plan needs of the records. Of several examples that have all of them, it is
    the one with most attributes of the codebook.
    """
    needed = set(columns)
    candidates = [example for example in EXAMPLES if needed <= set(example.domain.names)]
    attributes = domain.attributes
    alike = [sum(each in one.domain.attributes for each in attributes) for one in candidates]
    return candidates[alike.index(max(alike))] if candidates else None


# ---- The example for areas: a made-up country with its codebook, its file of areas and records.


COUNTRY_KEY = "country-census"
CODEBOOK, RECORDS = f"{COUNTRY_KEY}.json", f"{COUNTRY_KEY}.parquet"
ATTRIBUTES = ("sex", "age_group", "birthplace")  # beside the areas
MAP = f"{COUNTRY_KEY}-map.geojson"
COUNTRY = "Orsavia, a made-up country of 24,939 areas on five levels."
SURVEY = "Census of Orsavia"
COUNTRY_QUESTION = "How much detail can regions, counties, municipalities and blocks have?"
SUMMARY = "4,317,876 people of a made-up country, by the block that they live in."
# From the top: all tables of up to so many attributes. A block has too few people for more.
_DETAIL = {"all": 3, "region": 3, "county": 3, "municipality": 2}
_OF_BLOCKS = ((), ("sex",), ("age_group",))


@cache
def sample_areas() -> AreaCodebook:
    """The areas of the country, and the other attributes."""
    return AreaCodebook.load(sample_data_folder() / CODEBOOK)


@cache
def _sample_scenario() -> Scenario:
    book = sample_areas()
    tables = {level: Workload.all_up_to(book.domain, order) for level, order in _DETAIL.items()}
    tables["block"] = Workload.of(book.domain, _OF_BLOCKS)
    path = sample_data_folder() / f"{COUNTRY_KEY}-expected.csv"
    return Scenario(
        book.domain,
        name="Less detail in blocks",
        note="The lower the level, the fewer attributes a table has; blocks have totals, sex, age.",
        survey=SURVEY,
        record_noun="people",
        expected=expected_counts_from_csv(book.domain, path.read_bytes(), path.name),
        areas=replace(AreaStudy.of(CODEBOOK, book), tables=tables),
        asks_for_tables=False,  # those of the whole country are tables in areas, too
    )


def sample_project() -> Project:
    """The country in a project of its own, with tables that suit the size of its areas."""
    return Project((_sample_scenario(),))


def sample_records_for(plan: Plan) -> Path | None:
    """The records of the country, if the plan is for its codebook, and for its areas if for any."""
    if (
        plan.domain.of_records.names != ATTRIBUTES
        or plan.domain.of_records != sample_areas().domain
    ):
        return None
    areas = plan.part("areas")
    is_for_others = areas is not None and not is_sample(areas.workload.tree)
    return None if is_for_others else sample_data_folder() / RECORDS


def sample_map_for(tree: AreaTree) -> Path | None:
    """The map of the country's municipalities, if these are its areas."""
    return sample_data_folder() / MAP if is_sample(tree) else None


def is_sample(tree: AreaTree) -> bool:
    """Whether these are the areas of the country."""
    return tree.sha256 == sample_areas().tree.sha256
