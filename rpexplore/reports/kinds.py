"""What reports tell of the kinds of parts of a plan, where sentences differ between them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from rpexplore.analysis.accuracy import Headline, headline
from rpexplore.analysis.area_accuracy import area_headline, n_tables_below
from rpexplore.analysis.queries import query_headline
from rpexplore.common.text import joined
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts
from rpexplore.domain.public_tables import PublicTables
from rpexplore.domain.smooth_rehearsal import SmoothRehearsal
from rpexplore.domain.survey import SurveyDesign
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.mechanism.variances import cells_differ
from rpexplore.planning.stated_forecast import StatedForecast
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.section import Section
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.workload import Workload

# Where the standard error is below this, the noise's whole steps show in its quantiles.
COARSE = 2.0

_RP = "Xiao, He, Zhang, Kifer, NeurIPS 2023"
_RP_PLUS = "He, Xiao, Toksoz, Ding, Zhang, Kifer, VLDB Journal"
_GAUSSIAN = "a Gaussian mechanism for sets of tables"
_BY_NUMBER = "a record changes one cell of each table by one"
_BY_SUM = (
    "a record changes one count of single values by one, and each of them is a sum of such counts"
)

_OF_AMOUNTS = (
    "; of amounts it divides a count between the two limits, which changes no measurement by more "
    "than a record at one of them"
)


@dataclass(frozen=True)
class Words:
    """A part of a plan in the words of its kind.

    name        of the part, in front of headings where a plan has several parts
    item        what is asked for, one of: "table", "own count"
    answers     what comes of it: "tables", "own counts"
    mechanism   its name; sort: what it is; source: who published it
    changes     what one record changes
    by_matrices whether measured through matrices of whole numbers
    clamping    what is done to amounts beyond their limits, in sentences; "" without amounts
    bias        how noise and size go together, to begin a sentence
    look_at     what to do about it
    objective   what is made small, behind "Minimise"
    bound_of    what the bound of the certificate holds for
    n_coarse    how many items have a cell whose noise shows its whole steps
    cells_differ  whether some item's cells differ noticeably in accuracy
    top         the accuracy in a few numbers; None where none is known
    least       whose the largest error is
    methods     further methods behind it, as a sentence
    """

    name: str
    part: Any
    mechanism: str
    source: str
    changes: str
    bias: str
    look_at: str
    item: str = "table"
    answers: str = "tables"
    sort: str = _GAUSSIAN
    by_matrices: bool = False
    clamping: str = ""
    objective: str = ""
    bound_of: str = ""
    n_coarse: int = 0
    cells_differ: bool = False
    top: Headline | None = None
    least: str = "of the least accurate one"
    methods: str = ""
    is_adaptive: bool = False
    is_of_areas: bool = False


def _of_tables(plan: TablePlan) -> Words:
    is_marginals, differ = plan.workload.is_marginals, cells_differ(plan.table_variances)
    top, clamping = headline(plan), _clamping(plan.workload)
    return Words(
        name="Tables",
        part=plan,
        mechanism=f"ResidualPlanner{_plus(is_marginals)}",
        source=_RP if is_marginals else _RP_PLUS,
        changes=f"{_BY_NUMBER if is_marginals else _BY_SUM}{_OF_AMOUNTS if clamping else ''}",
        by_matrices=not is_marginals,
        clamping=clamping,
        bias="The noise of a cell does not depend on its count"
        if differ
        else "Every cell of a table gets noise of the same size",
        look_at="Look at the tables of small groups and at the least accurate tables; give them "
        "more weight or a target, or coarser categories.",
        objective=plan.loss.description,
        bound_of="every choice of Gaussian noise on the residuals"
        f"{_measured_as_here(is_marginals)}",
        n_coarse=int((plan.table_variances.standard_errors("smallest") < COARSE).sum()),
        cells_differ=differ,
        top=top,
        least=top.largest_text if differ else "of the least accurate one",
        methods=_RANGES if not is_marginals else "",
    )


def _clamping(workload: Workload) -> str:
    """What is done to amounts beyond their limits, in sentences; "" without amounts."""
    attributes = [workload.domain.attributes[index] for index in workload.amounts]
    return " ".join(
        f"Of {one.name}, {one.values.clamping}."
        for one in attributes
        if isinstance(one.values, Amounts)
    )


def _of_areas(plan: AreaPlan) -> Words:
    is_marginals, top = plan.workload.tables.is_marginals, area_headline(plan)
    clamping = _clamping(plan.workload.tables)
    shared = ", the same in all areas of a level" if plan.uniform else ""
    return Words(
        name="Areas",
        part=plan,
        mechanism=f"ResidualPlanner{_plus(is_marginals)} in every area of a tree",
        source=_RP if is_marginals else _RP_PLUS,
        changes="a record changes one cell by one of each table of the areas that it lies in, and "
        "nothing elsewhere"
        if is_marginals
        else f"{_BY_SUM}{_OF_AMOUNTS if clamping else ''}",
        by_matrices=not is_marginals,
        clamping=clamping,
        bias="All cells of a table of an area get noise of the same size, however few people they "
        "hold, and areas differ"
        if is_marginals
        else "The noise of a cell does not depend on its count",
        look_at="Look at the tables of small groups and at the least accurate tables and areas; "
        "give them more weight or a target, or coarser categories.",
        objective=plan.loss.description,
        bound_of="every choice of independent Gaussian noise on the residuals of every area"
        f"{shared}{_measured_as_here(is_marginals)}",
        n_coarse=n_tables_below(plan, COARSE),
        cells_differ=not is_marginals,
        top=top,
        least="of the least accurate one" if is_marginals else top.largest_text,
        methods="Areas: the noise of every area as in section 15 of the mathematics of rpexplore "
        "(docs/mathematics.md); least squares on a tree as Hay, Rastogi, Miklau, Suciu: Boosting "
        "the Accuracy of Differentially Private Histograms Through Consistency, VLDB 2010.",
        is_of_areas=True,
    )


def _of_counts(plan: QueryPlan) -> Words:
    return Words(
        name="Own counts",
        part=plan,
        item="own count",
        answers="own counts",
        mechanism="Fitness for use",
        sort="a Gaussian mechanism for lists of counts with targets",
        source="Xiao, Ding, Wang, Zhang, Kifer, VLDB 2021",
        changes=_BY_SUM,
        by_matrices=True,
        bias="The noise of a count does not depend on how large it is",
        look_at="Look at the counts about small groups and at those furthest off their targets; "
        "give them narrower targets, or leave them out.",
        objective=plan.objective.description.replace("a variance", "an own count's variance"),
        bound_of="every mechanism with Gaussian noise",
        n_coarse=int((plan.standard_errors < COARSE).sum()),
        top=query_headline(plan),
        least="the least accurate own count",
        methods="Own counts: Xiao, Ding, Wang, Zhang, Kifer: Optimizing Fitness-for-Use of "
        "Differentially Private Linear Queries, VLDB 2021.",
    )


def _of_rounds(plan: AdaptivePlan) -> Words:
    return Words(
        name="Adaptive tables",
        part=plan,
        mechanism="ResidualPlanner in adaptive rounds",
        sort="the exponential mechanism, which selects tables, and a Gaussian mechanism, which "
        "measures them",
        source=f"{_RP}; selection by the exponential mechanism, as in AIM: McKenna, Mullins, "
        "Sheldon, Miklau, VLDB 2022",
        changes=_BY_NUMBER,
        bias="Estimates take the differences of small groups for noise first, and noise is not the "
        "same in all cells",
        look_at="Do not draw conclusions about small groups from these tables; measure them by a "
        "plan that is not adaptive.",
        methods="Adaptive selection: McKenna, Mullins, Sheldon, Miklau: AIM: An Adaptive and "
        "Iterative Mechanism for Differentially Private Synthetic Data, VLDB 2022; its cost as in "
        "Cesar, Rogers: Bounding, Concentrating, and Truncating, ALT 2021.",
        is_adaptive=True,
    )


_RANGES = (
    "Ranges, cumulative counts, hierarchies: He, Xiao, Toksoz, Ding, Zhang, Kifer: "
    "ResidualPlanner+: a scalable matrix mechanism for marginals and beyond, VLDB Journal."
)
_WORDS: dict[str, Callable[[Any], Words]] = {
    "tables": _of_tables,
    "areas": _of_areas,
    "counts": _of_counts,
    "rounds": _of_rounds,
}


def words_of(part: Any) -> Words:
    """A part of a plan in the words of its kind."""
    return _WORDS[part.kind](part)


@dataclass(frozen=True)
class PlanWords:
    """A whole plan, for sentences about all of its parts."""

    parts: tuple[Words, ...]

    @classmethod
    def of(cls, plan: Any) -> "PlanWords":
        return cls(tuple(map(words_of, plan.parts)))

    @cached_property
    def certified(self) -> list[Words]:
        """The parts whose accuracy is known beforehand."""
        return [words for words in self.parts if not words.is_adaptive]

    @property
    def is_adaptive(self) -> bool:
        """Whether some part is adaptive."""
        return len(self.certified) < len(self.parts)

    @property
    def is_of_areas(self) -> bool:
        """Whether some part has areas."""
        return any(words.is_of_areas for words in self.parts)

    @property
    def has_tables(self) -> bool:
        """Whether some part has tables whose accuracy is known beforehand."""
        return any(words.answers == "tables" for words in self.certified)

    @property
    def clamping(self) -> str:
        """What is done to amounts beyond their limits; "" without amounts."""
        return " ".join(filter(None, [words.clamping for words in self.parts]))

    @property
    def by_matrices(self) -> bool:
        """Whether something is measured through matrices."""
        return any(words.by_matrices for words in self.parts)

    @property
    def asked(self) -> str:
        """What is asked for: "tables", "tables and own counts"."""
        plurals = {"table": "tables", "own count": "own counts"}
        return self._each(plurals[words.item] for words in self.parts)

    @property
    def answers(self) -> str:
        """What is released: "tables", "tables and own counts"."""
        return self._each(words.answers for words in self.parts)

    @property
    def estimates(self) -> str:
        """What the tables of an adaptive part are called beside others."""
        return "adaptive tables" if self.certified else "tables"

    def texts(self, name: str) -> list[str]:
        """What the parts say under a name, each text once; nothing of those that say nothing."""
        return list(dict.fromkeys(filter(None, (getattr(words, name) for words in self.parts))))

    @staticmethod
    def _each(texts: Any) -> str:
        return joined(list(dict.fromkeys(texts)))


def _plus(is_marginals: bool) -> str:
    return "" if is_marginals else "+"


def _measured_as_here(is_marginals: bool) -> str:
    return "" if is_marginals else ", with attributes measured as they are here"


# ---- What a report is given beside a plan, and what it tells of one part of the plan.


FrontRow = tuple[str, ...]  # a term of the first page, and what there is to say of it


@dataclass(frozen=True)
class Given:
    """What a report is given beside the plan; fields as of `report`.

    kept: the forecast that the plan keeps; guesses: `area_guesses` there
    """

    record_noun: str = "records"
    expected: ExpectedCounts | None = None
    cv_limit: float = CV_LIMIT
    request: WorkloadRequest | None = None
    rehearsal: SmoothRehearsal | None = None
    area_totals: Mapping[int, float] | None = None
    design: SurveyDesign | None = None
    public: PublicTables | None = None
    kept: StatedForecast | None = None
    guesses: pd.DataFrame | None = None


@dataclass(frozen=True)
class PartReport:
    """What a report tells of a part of a plan.

    of_kind   behind what is released, in the subtitle: " of 341 areas"
    front     terms of the first page, without privacy, which is that of the plan
    sections  about the part alone
    """

    front: Sequence[FrontRow]
    sections: Sequence[Section]
    of_kind: str = ""
