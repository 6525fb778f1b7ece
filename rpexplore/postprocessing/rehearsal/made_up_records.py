"""Made-up records: the public counts that are known, and beyond these skew and dependence.

Every record belongs to one of a few invented classes, and its attributes are independent given the
class (a latent class model). Within a class the values of an attribute are unequally frequent,
neighbouring values alike. How much so is an assumption, chosen such that smooth tables of made-up
records are about as accurate as those of real ones (`SKEW`, `DEPENDENCE`).
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from scipy.special import ndtri

from rpexplore.data.counting import Codes
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.estimation.seeded_numbers import SeededNumbers
from rpexplore.releases.rehearsal import whole_counts

SKEW, DEPENDENCE = 1.5, 2.0
"""Standard deviations of logarithms of shares: between the values of an attribute, and between
classes. Of those tried, 0 to 2 and 0 to 3, the nearest to Adult and the sample household survey."""

_CLASSES = 6


def made_up_records(
    domain: Domain, expected: ExpectedCounts, attributes: Iterable[int]
) -> tuple[Codes, int]:
    """Category indices of these attributes, and the number of records, which is as expected.

    The same expected counts always give the same records. Raises `WorkloadError` if they do not
    fit the domain.
    """
    expected = expected.fitted(domain)
    public = {domain.position(name): axis for axis, name in enumerate(expected.attributes)}
    # Each has its own numbers, so that plans of other attributes are rehearsed on the same records.
    numbers = {
        index: _numbers(expected, domain.names[index], int(domain.sizes[index]))
        for index in sorted({*attributes, *public})
    }
    shares = {index: _class_shares(own, int(domain.sizes[index])) for index, own in numbers.items()}
    counts = whole_counts(expected.margin)
    n_records = int(counts.sum())
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    values = [indices.ravel() for indices in np.indices(counts.shape)]
    # The probability of each class in each public cell, by Bayes' rule.
    of_classes = _numbers(expected)
    evidence = np.tile(_normals(of_classes, _CLASSES), (counts.size, 1))
    for index, axis in public.items():
        evidence += np.log(shares[index][:, values[axis]].T)
    classes = _drawn(_normalised(evidence)[cells], of_classes.uniforms(n_records))
    codes = {index: values[axis][cells].astype(np.uint32) for index, axis in public.items()}
    for index, own in numbers.items():
        if index not in public:
            codes[index] = _drawn_by_class(shares[index], classes, own.uniforms(n_records))
    return codes, n_records


def _numbers(expected: ExpectedCounts, *what: object) -> SeededNumbers:
    """Numbers that follow from the expected counts, other ones for each attribute."""
    text = repr((expected.to_json(), *what))
    return SeededNumbers(hashlib.sha256(text.encode()).digest())


def _class_shares(numbers: SeededNumbers, size: int) -> np.ndarray:
    """The share of each value in each class, float64[n_classes, size]."""
    skew = SKEW * _normals(numbers, size)
    apart = _normals(numbers, _CLASSES * size).reshape(_CLASSES, size) / 2
    walk = np.cumsum(_normals(numbers, _CLASSES * size).reshape(_CLASSES, size), axis=1)
    walk = (walk - walk.mean(axis=1, keepdims=True)) / np.sqrt(size)
    return _normalised(skew + DEPENDENCE * (apart + walk))


def _normals(numbers: SeededNumbers, count: int) -> np.ndarray:
    """Standard normal numbers, float64[count]."""
    return ndtri(numbers.uniforms(count).astype(float) + 2.0**-25)  # never 0


def _normalised(logarithms: np.ndarray) -> np.ndarray:
    """Shares along the last axis, sum 1."""
    shares = np.exp(logarithms - logarithms.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def _drawn(shares: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """The category of each record, whose own shares are a row of `shares`."""
    return np.sum(np.cumsum(shares, axis=1)[:, :-1] <= uniforms[:, None], axis=1)


def _drawn_by_class(shares: np.ndarray, classes: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """The value of each record, by the shares of its class: uint32[n_records]."""
    values = np.empty(len(classes), dtype=np.uint32)
    for number, of_class in enumerate(np.cumsum(shares, axis=1)[:, :-1]):
        members = classes == number
        values[members] = np.searchsorted(of_class, uniforms[members], side="right")
    return values
