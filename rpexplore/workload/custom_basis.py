"""Own questions: a matrix given by the user, one row a question about one attribute's values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from rpexplore.domain.attribute import Attribute, is_text
from rpexplore.errors import WorkloadError

MAX_CUSTOM_VALUES = 1_000
MAX_CUSTOM_QUERIES = 10_000
MAX_CUSTOM_ENTRIES = 2_000_000
# Squares of entries, and their sums, stay normal numbers.
_LARGEST, _SMALLEST = 1e12, 1e-12

_MOST_NAMED = 5


@dataclass(frozen=True)
class CustomBasis:
    """Own questions: the rows of a matrix with one column for each value.

    labels  what each question is called; (): "question 1", "question 2", …
    name    what the questions are called together; may be empty

    Raises `WorkloadError` for a matrix that is too large, ragged, or holds anything but finite
    numbers of usual size, for a question that asks for nothing, and for labels that do not fit.
    """

    rows: tuple[tuple[float, ...], ...]
    labels: tuple[str, ...] = ()
    name: str = ""
    kind: ClassVar[str] = "custom"
    is_identity: ClassVar[bool] = False

    def __post_init__(self) -> None:
        matrix = _matrix(self.rows)
        object.__setattr__(self, "rows", tuple(map(tuple, matrix.tolist())))
        if not is_text(self.name):
            raise WorkloadError(f"The name of own questions must be a text, got {self.name!r}.")
        if not isinstance(self.labels, list | tuple):
            raise WorkloadError(f"The labels must be a list of texts, got {self.labels!r}.")
        labels = tuple(self.labels) or tuple(f"question {r + 1}" for r in range(len(matrix)))
        if len(labels) != len(matrix):
            raise WorkloadError(
                f"There are {len(matrix):,} own questions but {len(labels):,} labels; give each "
                "question one label, or none at all."
            )
        seen: set[str] = set()
        for row, label in enumerate(labels, start=1):
            if not is_text(label) or not label.strip():
                raise WorkloadError(
                    f"The label of question {row} must be a text that is not empty, got {label!r}."
                )
            if label in seen:
                raise WorkloadError(
                    f"The label {label!r} stands for two questions; give each its own label."
                )
            seen.add(label)
        object.__setattr__(self, "labels", labels)

    @cached_property
    def _hash(self) -> int:
        return hash(self.rows)  # of numbers only, so the same in every process

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def matrix(self) -> np.ndarray:
        """The questions, float64[n_rows, n_values], read-only."""
        matrix = np.array(self.rows)
        matrix.setflags(write=False)
        return matrix

    def check(self, attribute: Attribute) -> None:
        """Raise `WorkloadError` unless the answers determine the count of every value."""
        given = len(self.rows[0])
        if given != attribute.size:
            raise WorkloadError(
                f"{self._called} must have one number for each of the {attribute.size:,} values of "
                f"attribute {attribute.name!r}, got {given:,}; give every value its column."
            )
        if len(_unseen(self)[0]):
            raise WorkloadError(self._what_is_missing(attribute))

    def n_rows(self, attribute: Attribute) -> int:
        return len(self.rows)

    def words(self, attribute: Attribute) -> str:
        return f"own questions ({self.name})" if self.name else "own questions"

    @property
    def _called(self) -> str:
        return f"The own questions {self.name!r}" if self.name else "The own questions"

    def _what_is_missing(self, attribute: Attribute) -> str:
        """Which values the questions leave open, and which questions would settle them."""
        unseen, remedy = _unseen(self)
        label, matrix = attribute.values.label, self.matrix
        columns: dict[bytes, list[int]] = {}
        for value in range(attribute.size):
            columns.setdefault(matrix[:, value].tobytes(), []).append(value)
        never = columns.pop(bytes(matrix[:, 0].nbytes), [])
        alike = [values for values in columns.values() if len(values) > 1][:3]
        told = [f"they never count {_listed(map(label, never))}"] if never else []
        told += [f"they never tell {_listed(map(label, values))} apart" for values in alike]
        if len(unseen) > len(never) + sum(len(values) - 1 for values in alike):
            among = np.flatnonzero(np.abs(unseen).max(axis=0) > 1e-6).tolist()
            named = {value for values in (never, *alike) for value in values}
            others = [value for value in among if value not in named] or among
            told.append(f"they leave open how many are in {_listed(map(label, others))}")
        if np.abs(unseen.sum(axis=1)).max() > 1e-6:
            told.append("not even the total follows from them")
        each = "" if len(remedy) == 1 else "each of "
        return (
            f"{self._called} must determine the counts of all {attribute.size:,} values of "
            f"attribute {attribute.name!r}, but have rank {attribute.size - len(unseen):,}: "
            f"{'; '.join(told)}. Add a question for {each}{_listed(map(label, remedy))}."
        )


def check_custom_size(n_queries: int, n_values: int) -> None:
    """Raise `WorkloadError` for a matrix of own questions that is empty or too large."""
    if min(n_queries, n_values) < 1:
        raise WorkloadError("Own questions need at least one question and one value, got none.")
    for count, most, noun in (
        (n_queries, MAX_CUSTOM_QUERIES, "questions"),
        (n_values, MAX_CUSTOM_VALUES, "values"),
        (n_queries * n_values, MAX_CUSTOM_ENTRIES, "entries (questions times values)"),
    ):
        if count > most:
            raise WorkloadError(
                f"Own questions can have at most {most:,} {noun}, got {count:,}; ask fewer, or "
                "group the values of the attribute."
            )


def _matrix(rows: Sequence[Sequence[float]]) -> np.ndarray:
    """The checked matrix, float64[n_rows, n_values], with 0 for −0."""
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2:
            raise WorkloadError(f"Own questions must be a matrix, got {rows.ndim} dimensions.")
    else:
        if not isinstance(rows, list | tuple) or not all(
            isinstance(row, list | tuple) for row in rows
        ):
            raise WorkloadError("Own questions must be a list of rows of numbers.")
        for number, row in enumerate(rows, start=1):
            if len(row) != len(rows[0]):
                raise WorkloadError(
                    f"Every question must have one number for each value, but question {number} "
                    f"has {len(row):,} and question 1 has {len(rows[0]):,}."
                )
    check_custom_size(len(rows), len(rows[0]) if len(rows) else 0)
    given = np.array(rows)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise WorkloadError("Own questions must be rows of numbers, and hold something else.")
    matrix = given.astype(np.float64) + 0.0
    size = np.abs(matrix)
    usual = (size <= _LARGEST) & ((size >= _SMALLEST) | (size == 0))  # NaN is not
    if not usual.all():
        row, column = np.argwhere(~usual)[0]
        raise WorkloadError(
            f"Question {row + 1}, column {column + 1} must be 0 or a finite number of size 1e-12 "
            f"to 1e12, got {matrix[row, column]:g}."
        )
    empty = np.flatnonzero(~matrix.any(axis=1))
    if len(empty):
        raise WorkloadError(f"Question {empty[0] + 1} is all zeros and asks nothing; remove it.")
    return matrix


@lru_cache(maxsize=16)
def _unseen(own: CustomBasis) -> tuple[np.ndarray, list[int]]:
    """What the questions cannot see, and the places of values that would settle it once counted.

    First a basis of the null space, float64[n_values − rank, n_values].
    """
    matrix = own.matrix / np.abs(own.matrix).max(axis=1, keepdims=True)
    n = matrix.shape[1]
    squares = np.linalg.eigvalsh(matrix.T @ matrix)
    if squares[0] > 1e-8 * squares[-1]:  # surely of full rank, and quicker to find out
        return np.empty((0, n)), []
    from scipy.linalg import qr, solve_triangular  # slow to import, and rarely needed

    decomposed: Any = qr(matrix, mode="r", pivoting=True)
    upper, order = decomposed
    sizes = np.abs(np.diag(upper))
    tolerance = 16 * max(matrix.shape) * np.finfo(np.float64).eps
    rank = np.count_nonzero(sizes > sizes[0] * tolerance)
    unseen = np.zeros((n - rank, n))
    unseen[:, order[rank:]] = np.eye(n - rank)
    unseen[:, order[:rank]] = -solve_triangular(upper[:rank, :rank], upper[:rank, rank:]).T
    return unseen, sorted(order[rank:].tolist())


def _listed(labels: Iterable[str]) -> str:
    """ "'A', 'B' and 'C'", cut where it is long."""
    names = [repr(label) for label in labels]
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1:,} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
