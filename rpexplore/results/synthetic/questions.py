"""Questions to a release: answered from its tables, or by the model of its synthetic records.

A question counts the records whose values lie in a selection of each attribute that it names. Where
no table holds these attributes together, the population of docs/mathematics.md §14 is fitted to the
smooth tables of all subsets of them that there are, in and out of each selection (§14.5 there).
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import Any, ClassVar

import numpy as np

from rpexplore.common.numbers import normal_quantile
from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.domain.values import question_from_text
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.estimation.agreement import fitted
from rpexplore.estimation.smooth_tables import SmoothTables
from rpexplore.estimation.table_map import ContributionArrays, TableMap
from rpexplore.planning.mechanism.asked_levels import queries_at_levels
from rpexplore.planning.mechanism.reconstruction import MarginalNoise, Where, query_attributes
from rpexplore.releases.items import CONFIDENCE, Answer, PartReader
from rpexplore.releases.means import MeanAnswer, mean_asked, with_sum
from rpexplore.results.synthetic.impossible import Impossible, conditions_of_records
from rpexplore.results.synthetic.population import population_records
from rpexplore.results.synthetic.targets import refuse_many_values, smooth_tables, smooth_targets
from rpexplore.results.unbiased import Estimates

Condition = Mapping[int, np.ndarray]
"""Index of an attribute -> whether each of its values counts, bool[size]."""

_POPULATION = 100_000  # records that conditions are first looked up in
_FITTING_ROUNDS = (
    12  # of a table of in and out to its margins; 100 moved none of 300 answers by 10⁻⁶
)
_FITTED_TO = 1e-6  # of an answer, by which a round may still change it
_SMALLEST = 1e-9  # count, that is divided by
_MOST_ATTRIBUTES = 6  # of rehearsed questions; of more the error is that of so many
_MOST_ASKED = 10  # attributes of a question: there are 2¹⁰ cells, in and out, numbered by int16
_QUESTIONS = 250  # rehearsed of each number of attributes
_FEWEST_COUNTS = 20  # of a rehearsed question that counts: intervals are claimed from 50 on
_SIZES = (0.0, 150.0, 500.0, 2000.0)  # where kinds of questions by expected size begin
_MOST_TABLES, _MOST_CELLS = 150, 300_000  # of one order, that are held out; of such a table
_QUESTIONS_OF_TABLE = 12
_FEWEST_QUESTIONS = 20  # of a size, for an error of its own
_BOUND = 1.28  # standard errors of a mean over such tables: 90 % of means are below
# Where no three attributes were measured, nothing tells how three depend jointly: assumed is this
# share of the variance by which pairs do (docs/mathematics.md §14.5).
_SHARE_OF_PAIRS = 0.03
# By which rehearsed errors are too small: without it, 89.6 % of the intervals of random questions
# held the count where regions, counties and towns are nested (tests/support/joint_records.py).
_TOO_EASY = 1.1
_NEXT_ORDER = 0.25  # of that, one attribute more; an assumption, as nothing was measured of it
_FITTED, _REHEARSED = 0.75, 0.9  # shares of the work


@dataclass(frozen=True)
class ModelAnswer(Answer):
    """The answer of a model: biased, with an error from simulated questions of its kind.

    The interval has each count of which the value is within 95 % errors of a count of that size,
    so that it is longer upwards.
    """

    basis: ClassVar[str] = "by a model"

    def describe(self) -> str:
        """What the answer rests on, in sentences."""
        return (
            "By a model: no table of the release has these attributes together. The value is "
            "biased; its error comes from simulated questions with as many attributes, and holds "
            "if the model does."
        )

    @property
    def lower_95(self) -> float:
        return max(self._middle - self._half, 0.0)

    @property
    def upper_95(self) -> float:
        return self._middle + self._half

    @property
    def _spread(self) -> float:
        """z² × the variance of a count of 1."""
        return (normal_quantile(CONFIDENCE) * self.standard_error) ** 2 / max(self.value, 1.0)

    @property
    def _middle(self) -> float:
        return self.value + self._spread / 2

    @property
    def _half(self) -> float:
        return (self._spread * (self.value + self._spread / 4)) ** 0.5


def describe_answer(answer: Answer, noun: str) -> str:
    """An answer with its interval and what it rests on, in a sentence.

    noun: what it is a number of, as `means.unit_of_query` has it
    """
    digits = 2 if isinstance(answer, MeanAnswer) else 0
    value, lower, upper = (
        f"{number:,.{digits}f}" for number in (answer.value, answer.lower_95, answer.upper_95)
    )
    said = f"{value} {noun}".replace(" ,", ",")
    return f"{said}, {answer.basis}; 95 % interval {lower} to {upper}."


class Questions:
    """What answers questions to a release, from its tables or by a model.

    The model is fitted for the first question that needs it, and kept. The same release always
    gives the same answers; they cost no privacy.

    Example:
        questions = rp.Questions(release)
        questions.answer(where={"age": "65..", "income": "..1000", "region": "R01"}).basis
    """

    def __init__(self, source: PartReader) -> None:
        """source: a release, or combined tables; raises `ReleaseError` if it has no tables."""
        self._tables = source.unbiased_tables()
        self.domain = self._tables.domain.with_levels  # also those that no table has
        self._model: FittedModel | None = None

    def answer(
        self, where: Where | str, *, on_progress: Progress = no_progress
    ) -> Answer | ModelAnswer:
        """How many records meet a condition.

        Args:
            where: Attribute name -> its values as a text ("65.."), or one number, 0 or 1, for each
                of its values; or all as one text, "age=65.. region=R01". Of amounts "sum",
                "records" or "mean".

        Returns:
            From the tables if one holds the attributes together, unbiased and with the exact error;
            else of the kind `ModelAnswer`, whose `basis` is "by a model".

        Raises:
            WorkloadError: If an attribute is in no table, or at levels alone of which none tells
                what is asked, or is one of amounts that no table has with the others.
            DomainError: For an unknown attribute, or a text that names no values.
            ReleaseError: If no model can be fitted to what was released.
        """
        if isinstance(where, str):
            where = question_from_text(self.domain, where)
        mean = mean_asked(self.domain, where)
        if mean is not None:
            where = with_sum(where, mean)  # a model has none: an error below says so
        by_values = self._by_values(where)
        if by_values != where and not self.is_held(where):
            where = by_values
        if self.is_held(where):
            return self._tables.answer(where=where if mean is None else {**where, mean: "mean"})
        # The model is of the levels that tables have.
        at_levels: dict[str, Any] = {}
        level_of: dict[str, int] = {}
        for name, values in where.items():
            query = next(iter(self._at_levels({name: values})), {name: values})
            at_levels |= query
            (level_of[name],) = self.domain.positions(query)
        condition = {
            index: within
            for index, within in self._condition(at_levels).items()
            if not np.all(within)
        }
        # Attributes of which all values count are summed over: a table may hold the others.
        narrowed: dict[str, Any] = {
            name: values for name, values in where.items() if level_of[name] in condition
        }
        if self.is_held(narrowed):
            return self._tables.answer(where=narrowed)
        if len(condition) > _MOST_ASKED:
            raise WorkloadError(
                f"A model answers questions over {_MOST_ASKED} attributes at most, got "
                f"{len(condition)}; ask for fewer."
            )
        return self.model(on_progress).answer(condition)

    def is_held(self, where: Where) -> bool:
        """Whether a table holds the attributes of a condition together, or levels that tell it.

        Raises `WorkloadError` if tables hold only levels that do not.
        """
        return bool(self._at_levels(where))

    def _at_levels(self, where: Where) -> list[dict[str, list[float]]]:
        return queries_at_levels(self.domain, where, self._tables.table_names)

    def _by_values(self, where: Where) -> Where:
        """The question by values of attributes where it names groups of their levels.

        An attribute that it names several times has the product: what meets all of them.
        """

        def vector(name: str, selection: Any) -> np.ndarray:
            (found,) = self._vectors({name: selection}).values()
            return found

        named = [name for name in where if self.domain[name].of]
        asked: dict[str, Any] = {name: where[name] for name in where if name not in named}
        for name in named:
            attribute = self.domain[name]
            of_values = vector(name, where[name])[list(attribute.index_of_values)]
            if attribute.of in asked:
                of_values = of_values * vector(attribute.of, asked[attribute.of])
            asked[attribute.of] = of_values.tolist()
        return asked

    def _vectors(self, where: Where) -> dict[int, np.ndarray]:
        asked = query_attributes(self.domain, (), where)
        return MarginalNoise(self.domain, asked, {}, {}).vectors(where)

    def model(self, on_progress: Progress = no_progress) -> "FittedModel":
        """The model, fitted at the first call."""
        if self._model is None:
            try:
                self._model = FittedModel.of(Estimates.of(self._tables), on_progress)
            except ReleaseError as error:
                raise ReleaseError(
                    "The release holds no table with these attributes together, and no model can "
                    f"answer in its place: {error}"
                ) from None
        return self._model

    def _condition(self, where: Where) -> Condition:
        """A condition as the model has it; raises `WorkloadError` for one that it cannot answer."""
        domain, condition = self.domain, {}
        known = {name for table in self._tables.table_names for name in table}
        asked = query_attributes(domain, (), where)
        for index in asked:
            name = domain.names[index]
            if name not in known:
                raise WorkloadError(
                    f"The attribute {name!r} is in no table of the release, so nothing is known of "
                    "it; ask without it."
                )
            if index in domain.amounts:
                raise WorkloadError(
                    f"The attribute {name!r} is one of amounts, and no table has it with all "
                    "others of the question; a model answers counts alone. Ask for fewer "
                    "attributes."
                )
        for index, numbers in self._vectors(where).items():
            if not np.all(np.isin(numbers, (0, 1))):
                raise WorkloadError(
                    f"A model counts records, so that attribute {domain.names[index]!r} needs a 0 "
                    "or 1 for each value, or its values as a text; no table has these attributes "
                    "together, which would answer other numbers."
                )
            condition[index] = numbers.astype(bool)
        return condition


class _Tables:
    """Tables of contributions, none of them below 0, each made once."""

    def __init__(self, table_map: TableMap, contributions: ContributionArrays) -> None:
        self.contributions, self._map = contributions, table_map
        self._made: dict[AttributeIndices, np.ndarray] = {}

    def __contains__(self, subset: AttributeIndices) -> bool:
        return subset in self.contributions

    def __getitem__(self, subset: AttributeIndices) -> np.ndarray:
        if subset not in self._made:
            self._made[subset] = np.maximum(self._map.table(subset, self.contributions), 0.0)
        return self._made[subset]


@dataclass(frozen=True, eq=False)
class _Population:
    """Records of the model, and the tables that what they say is fitted to.

    codes  category of each attribute in each record: int16[n_attributes, n_records]
    rows   the row of each attribute there, by its index in the domain
    sizes  values of each attribute, by its index in the domain
    """

    codes: np.ndarray
    rows: Mapping[int, int]
    sizes: np.ndarray
    smooth: SmoothTables
    tables: _Tables

    def count(self, condition: Condition, total: float) -> float:
        """How many records meet a condition, of so many in all."""
        asked = tuple(sorted(condition))
        table = self._shares(condition) * total
        margins = []
        for subset in self._largest_held(asked):
            rest = tuple(axis for axis, index in enumerate(asked) if index not in subset)
            part = self.tables[subset]
            for index in subset:  # the first is summed, and its two parts come last
                within = condition[index]
                part = np.tensordot(part, np.stack([~within, within], 1).astype(float), (0, 0))
            margins.append((rest, np.expand_dims(part, rest)))
        asked_cell, before = (1,) * len(asked), np.inf
        for _ in range(_FITTING_ROUNDS):
            for rest, margin in margins:
                sums = np.add.reduce(table, rest, keepdims=True)
                table *= margin / np.maximum(sums, _SMALLEST)
            count = float(table[asked_cell])
            if abs(count - before) <= _FITTED_TO * max(count, 1.0):
                break
            before = count
        return float(table[asked_cell])

    def _shares(self, condition: Condition) -> np.ndarray:
        """Share of the population out of and in each selection, float64[2, …, 2], none of them 0.

        As if there were one record more, without dependence.
        """
        n_records, order = self.codes.shape[1], len(condition)
        cells = np.zeros(n_records, dtype=np.int16)
        for place, index in enumerate(sorted(condition, reverse=True)):
            digits = condition[index].astype(np.int16) << place
            cells += digits.take(self.codes[self.rows[index]])  # thrice as fast as digits[…]
        counts = np.bincount(cells, minlength=2**order).reshape((2,) * order)
        independent = np.ones(())
        for axis in range(order):
            own = counts.sum(axis=tuple(i for i in range(order) if i != axis))
            independent = np.multiply.outer(independent, own / n_records)
        return (counts + independent) / (n_records + 1)

    def _largest_held(self, asked: AttributeIndices) -> list[AttributeIndices]:
        """The sets of these attributes that have a table, but none within another."""
        held: list[AttributeIndices] = []
        for order in range(len(asked), 0, -1):
            for subset in combinations(asked, order):
                if subset in self.tables and not any(set(subset) <= set(other) for other in held):
                    held.append(subset)
        return held


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The model of a release, and the errors of its answers by kind of question.

    total    of all records
    spreads  by number of attributes and expected size: the standard error of an answer by noise,
             over the root of the count
    beyond   by number of attributes and expected size: the variance that so many attributes add by
             depending jointly, as smaller tables do not show, over the count
    """

    population: _Population
    impossible: Impossible
    total: float
    spreads: Mapping[int, np.ndarray]
    beyond: Mapping[int, np.ndarray]

    @classmethod
    def of(cls, estimates: Estimates, on_progress: Progress = no_progress) -> "FittedModel":
        """Fit the model, and rehearse its questions; some seconds to a minute.

        Raises `ReleaseError` if no smooth tables can be made of what was measured, or these do not
        tell how wrong the model may be.
        """
        domain = estimates.domain
        if max(map(len, estimates.contributions)) == 1:
            raise ReleaseError(
                "all tables are of one attribute, which says nothing of how attributes depend on "
                "each other; ask a release that has tables of two."
            )
        attributes = tuple(sorted({index for table in estimates.tables for index in table}))
        refuse_many_values(domain, attributes)
        conditions, _ = conditions_of_records(domain, attributes, (), ignore_codebook=False)
        impossible = Impossible.of(domain, attributes, conditions)
        smooth = smooth_tables(estimates, part_of_progress(on_progress, 0.0, 0.1))
        targets, total = smooth_targets(estimates, smooth.contributions, attributes)
        text = " ".join(["rpexplore questions", *sorted(one.sha256 for one in estimates.sources)])
        seed = hashlib.sha256(text.encode()).digest()
        on_fit = part_of_progress(on_progress, 0.1, _FITTED)
        codes = population_records(targets, _POPULATION, seed, impossible, on_fit)
        rows = {index: row for row, index in enumerate(attributes)}
        tables = _Tables(
            TableMap(smooth.contributions, domain.sizes, estimates.strategies), smooth.contributions
        )
        population = _Population(np.ascontiguousarray(codes.T), rows, domain.sizes, smooth, tables)
        numbers = SeededNumbers(seed + b"rehearsal")
        on_rehearsal = part_of_progress(on_progress, _FITTED, _REHEARSED)
        spreads = _rehearsed(population, total, numbers, on_rehearsal)
        on_progress("Holding tables out", _REHEARSED)
        beyond = _joint_dependence(estimates, population, numbers)
        on_progress("Finished", 1.0)
        return cls(population, impossible, total, spreads, beyond)

    def answer(self, condition: Condition) -> ModelAnswer:
        """The count of a condition, with its error; 0 without one if the codebook excludes it."""
        if self._is_impossible(condition):
            return ModelAnswer(0.0, 0.0)
        value = self.population.count(condition, self.total)
        size = max(value, 1.0)
        group = int(np.searchsorted(_SIZES, size, side="right")) - 1
        variance = float(self.spreads[min(len(condition), max(self.spreads))][group]) ** 2
        tables = self.population.tables
        asked = tuple(sorted(condition))
        for order in range(2, len(asked) + 1):
            missing = sum(subset not in tables for subset in combinations(asked, order))
            variance += missing**0.5 * float(self.beyond[min(order, max(self.beyond))][group])
        return ModelAnswer(value, float(np.sqrt(variance * size)))

    def _is_impossible(self, condition: Condition) -> bool:
        rows = {self.population.rows[index]: values for index, values in condition.items()}
        return any(
            stated.keys() <= rows.keys()
            and all(np.all(values[rows[row]]) for row, values in stated.items())
            for stated in self.impossible.conditions
        )


# ---- Errors of answers: questions are rehearsed, and largest tables held out.


def _rehearsed(
    population: _Population,
    total: float,
    numbers: SeededNumbers,
    on_progress: Progress,
) -> dict[int, np.ndarray]:
    """`FittedModel.spreads`.

    A possible truth is drawn and measured as in docs/mathematics.md §13.6. What the model answers
    of its tables and the whole population is compared with what it answers of new smooth tables and
    half of the population, which differs by sampling as much as the whole from the model itself.
    """
    truth, measured, again = population.smooth.rehearsed(on_progress, with_hidden=True)
    used = tuple(sorted({index for subset in truth for index in subset}))
    true = replace(population, tables=_Tables(measured.map, truth))
    half = np.ascontiguousarray(population.codes[:, ::2])
    new = replace(population, codes=half, tables=_Tables(measured.map, again.contributions))
    spreads = {}
    for order in range(1, min(_MOST_ATTRIBUTES, len(used)) + 1):
        values = []
        for _ in range(_QUESTIONS):
            chosen = tuple(sorted(used[i] for i in numbers.permutation(len(used))[:order]))
            condition = _drawn_condition(population, chosen, numbers)
            values.append((true.count(condition, total), new.count(condition, total)))
        spreads[order] = _TOO_EASY * _by_size(np.array(values))
    return spreads


def _by_size(values: np.ndarray) -> np.ndarray:
    """95 % quantile of |error| / √count over 1.96, by size; values: true and answered, [n, 2]."""
    true, answered = np.maximum(values, 1.0).T
    ratios = np.abs(answered - true) / np.sqrt(true)
    usual = float(np.sqrt(np.mean(ratios[true >= _FEWEST_COUNTS] ** 2))) or 1.0
    groups = np.searchsorted(_SIZES, answered, side="right") - 1
    counted = np.maximum(true, answered) >= _FEWEST_COUNTS
    spreads = []
    for group in range(len(_SIZES)):
        own = ratios[(groups == group) & counted]
        if len(own) < _FEWEST_QUESTIONS:
            spreads.append(usual)
        else:
            spreads.append(float(np.quantile(own, CONFIDENCE)) / normal_quantile(CONFIDENCE))
    return np.array(spreads)


def _drawn_condition(
    population: _Population, chosen: AttributeIndices, numbers: SeededNumbers
) -> dict[int, np.ndarray]:
    """A selection of each attribute that some record of the population is in.

    Its value, a range around it, or any other values beside it.
    """
    record = int(numbers.uniforms(1)[0] * population.codes.shape[1])
    condition = {}
    for index in chosen:
        value = int(population.codes[population.rows[index], record])
        size = int(population.sizes[index])
        within = np.zeros(size, dtype=bool)
        kind, first, last = numbers.uniforms(3)
        if kind < 1 / 2:
            pass
        elif kind < 3 / 4:
            within[int(first * (value + 1)) : value + 1 + int(last * (size - value))] = True
        else:
            within |= numbers.uniforms(size) < first
        within[value] = True
        condition[index] = within
    return condition


def _joint_dependence(
    estimates: Estimates, population: _Population, numbers: SeededNumbers
) -> dict[int, np.ndarray]:
    """`FittedModel.beyond`, of two attributes and of as many as were measured together.

    A measured residual less that of the table of largest entropy with its smaller tables is noise
    of known variance, and what these do not show.
    """
    beyond: dict[int, np.ndarray] = {}
    contributions = estimates.contributions
    for order in range(2, max(map(len, contributions)) + 1):
        tables = [
            table
            for table in contributions
            if len(table) == order
            and prod(estimates.domain.sizes[list(table)].tolist()) <= _MOST_CELLS
            and all(part in population.tables for part in combinations(table, order - 1))
        ]
        if not tables:
            continue
        rows = []
        for table in tables[:: -(-len(tables) // _MOST_TABLES)]:
            rows += _held_out(estimates, population, table, numbers)
        beyond[order] = _excess_by_size(np.array(rows))
    if not beyond:
        raise ReleaseError(
            f"the tables of two attributes have more than {_MOST_CELLS:,} cells each, too many to "
            "tell how wrong a model may be; ask what a table holds."
        )
    if max(beyond) == 2:
        beyond[3] = _SHARE_OF_PAIRS * beyond[2]
    for order in range(max(beyond) + 1, _MOST_ATTRIBUTES + 1):
        beyond[order] = _NEXT_ORDER * beyond.get(order - 1, np.zeros(len(_SIZES)))
    return beyond


def _held_out(
    estimates: Estimates, population: _Population, table: AttributeIndices, numbers: SeededNumbers
) -> Iterator[tuple[float, float, float]]:
    """Of questions on a table: its count by smaller ones, its squared distance, and the noise."""
    shape = tuple(estimates.domain.sizes[list(table)].tolist())
    margins = [population.tables[table[:axis] + table[axis + 1 :]] for axis in range(len(table))]
    guess = fitted(np.ones(shape), [np.asarray(margin, float) for margin in margins], 10)
    table_map = TableMap(subsets(table), estimates.domain.sizes, estimates.strategies)
    off = estimates.contributions[table] - table_map.decomposed(table, guess)
    for _ in range(_QUESTIONS_OF_TABLE):
        condition = _drawn_condition(population, table, numbers)
        value, distance, noise = guess, off, float(estimates.variances[table])
        for index in table:
            within = condition[index].astype(float)
            value = np.tensordot(within, value, axes=(0, 0))
            distance = np.tensordot(within, distance, axes=(0, 0))
            strategy = estimates.strategies.get(index)
            if strategy is None:
                noise *= within.sum() - within.sum() ** 2 / len(within)
            else:
                noise *= float(np.sum((within @ strategy.within(table).decoding) ** 2))
        yield float(value), float(distance) ** 2, noise


def _excess_by_size(rows: np.ndarray) -> np.ndarray:
    """Mean of (distance² − noise) / count by size, 0 at least; rows: count, distance², noise."""
    counts, squares, noise = rows.T
    counts = np.maximum(counts, 1.0)
    groups = np.searchsorted(_SIZES, counts, side="right") - 1
    excess, weights = (squares - noise) / counts, 1 / (1 + noise / counts) ** 2
    weights *= counts >= _FEWEST_COUNTS
    found = []
    for group in range(len(_SIZES)):
        own = weights * (groups == group)
        if np.count_nonzero(own) < _FEWEST_QUESTIONS:
            own = weights
        total = max(float(own.sum()), _SMALLEST)
        mean = float(np.sum(own * excess)) / total
        # As if questions about one table were one.
        spread = np.sqrt(_QUESTIONS_OF_TABLE * np.sum((own * (excess - mean)) ** 2)) / total
        found.append(max(mean + _BOUND * float(spread), 0.0))
    return np.array(found)
