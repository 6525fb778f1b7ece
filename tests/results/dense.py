"""Generalised least squares by matrices over all cells of a small domain: what combining must give.

Everything that was measured is stacked as y = B x + noise of covariance Σ; the best linear unbiased
answers to queries Q that B determines are Q (Bᵀ Σ⁻¹ B)⁺ Bᵀ Σ⁻¹ y. Residuals are measured by Sub
matrices (or a strategy's own), as docs/mathematics.md §3 and §4 define them, and turned into
contributions by their dense inverses; nothing of `reconstruction` or `postprocessing`
is used for it.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.results.measurement_source import MeasurementSource
from rpexplore.results.noisy_marginal import NoisyMarginal
from rpexplore.results.unbiased import Estimates
from tests.support.generalised import any_strategy
from tests.support.oracles import kron, marginal_matrix, sub, subsets


@dataclass(frozen=True)
class Measured:
    """y = matrix @ x + noise of this covariance."""

    matrix: np.ndarray
    covariance: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Part:
    """A release or a noisy marginal, for the library and as matrices."""

    given: Estimates | NoisyMarginal
    measured: list[Measured]


@dataclass(frozen=True)
class World:
    """Some parts about the same records."""

    domain: rp.Domain
    counts: np.ndarray
    parts: list[Part]

    @property
    def releases(self) -> list[Estimates]:
        return [part.given for part in self.parts if isinstance(part.given, Estimates)]

    @property
    def noisy(self) -> list[NoisyMarginal]:
        return [part.given for part in self.parts if isinstance(part.given, NoisyMarginal)]

    @property
    def tables(self) -> set[tuple[int, ...]]:
        released = {table for estimates in self.releases for table in estimates.tables}
        return released | {marginal.attribute_indices for marginal in self.noisy}

    def best(self, table) -> tuple[np.ndarray, np.ndarray]:
        """(marginal [cells], covariance [cells, cells]) by generalised least squares."""
        measured = [each for part in self.parts for each in part.measured]
        weighted = [np.linalg.solve(each.covariance, each.matrix).T for each in measured]
        information = sum(w @ each.matrix for w, each in zip(weighted, measured, strict=True))
        inverse = np.linalg.pinv(information, hermitian=True, rcond=1e-11)
        total = sum(w @ each.y for w, each in zip(weighted, measured, strict=True))
        query = marginal_matrix(self.domain.sizes.tolist(), table)
        return query @ inverse @ total, query @ inverse @ query.T


@lru_cache
def matrices(
    sizes: tuple[int, ...], residual: tuple[tuple[int, Strategy | None], ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of a residual: what is measured of all cells, the covariance of its noise at σ² = 1, a root
    of that, and what makes a contribution of a measurement.

    residual: (attribute index, strategy) of each of its attributes
    """
    strategies = dict(residual)
    factors, noise, inverse = [], [], []
    for attribute_index, n in enumerate(sizes):
        if attribute_index not in strategies:
            factors.append(np.ones((1, n)))
        elif (strategy := strategies[attribute_index]) is None:
            factors.append(sub(n))
            noise.append(sub(n) @ sub(n).T)
            inverse.append(np.linalg.pinv(sub(n)))
        else:
            matrix = strategy.integers / 2.0**strategy.bits
            factors.append(matrix)
            noise.append(np.eye(n - 1))
            inverse.append(np.linalg.inv(np.vstack([np.ones(n), matrix]))[:, 1:])
    covariance = kron(noise)
    return kron(factors), covariance, np.linalg.cholesky(covariance), kron(inverse)


def release(
    domain: rp.Domain,
    counts: np.ndarray,
    tables: list[tuple[int, ...]],
    rng: np.random.Generator,
    strategies: dict[int, Strategy],
    name: str,
    variances: dict[tuple[int, ...], Fraction] | None = None,
) -> Part:
    """What one release measures of all residuals within its tables, with any noise scales."""
    sizes = domain.sizes.tolist()
    kept = [
        [attribute_index for attribute_index in table if sizes[attribute_index] > 1]
        for table in tables
    ]
    residuals = sorted({subset for table in kept for subset in subsets(table)})
    contributions, sigma_squared, measured = {}, {}, []
    for subset in residuals:
        scale = Fraction(int(rng.integers(1, 500)), 50)
        sigma_squared[subset] = scale if variances is None else variances[subset]
        own = tuple(
            (attribute_index, strategies.get(attribute_index)) for attribute_index in subset
        )
        matrix, covariance, root, inverse = matrices(tuple(sizes), own)
        noise = root @ rng.normal(size=len(matrix)) * float(sigma_squared[subset]) ** 0.5
        y = matrix @ counts.ravel() + noise
        measured.append(Measured(matrix, covariance * float(sigma_squared[subset]), y))
        contributions[subset] = (inverse @ y).reshape(
            [sizes[attribute_index] for attribute_index in subset]
        )
    used = {attribute_index for subset in residuals for attribute_index in subset}
    source = MeasurementSource(
        name, f"sha of {name}", Fraction(1, 2), plan_sha256=f"plan of {name}"
    )
    estimates = Estimates(
        domain,
        tuple(tables),
        contributions,
        sigma_squared,
        {
            attribute_index: strategy
            for attribute_index, strategy in strategies.items()
            if attribute_index in used
        },
        (source,),
    )
    return Part(estimates, measured)


def noisy_marginal(
    domain: rp.Domain,
    counts: np.ndarray,
    table: tuple[int, ...],
    rng: np.random.Generator,
    variance: Fraction,
) -> Part:
    matrix = marginal_matrix(domain.sizes.tolist(), table)
    y = matrix @ counts.ravel() + rng.normal(size=len(matrix)) * float(variance) ** 0.5
    shape = [domain.attributes[attribute_index].size for attribute_index in table]
    given = NoisyMarginal(domain, table, y.reshape(shape), variance, rho=Fraction(1, 8))
    return Part(given, [Measured(matrix, np.eye(len(matrix)) * float(variance), y)])


@st.composite
def worlds(draw, *, most: int = 3):
    """Up to so many releases of unequal tables, and up to two noisy marginals."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    domain = rp.Domain.from_sizes({f"a{i}": n for i, n in enumerate(sizes)})
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = rng.integers(0, 100, sizes)
    indices = range(len(sizes))
    table = st.sets(st.sampled_from(indices)).map(lambda chosen: tuple(sorted(chosen)))
    several = [attribute_index for attribute_index in indices if sizes[attribute_index] > 1]
    special = draw(st.sets(st.sampled_from(several))) if several else set()
    strategies = {
        attribute_index: any_strategy(sizes[attribute_index], 7) for attribute_index in special
    }
    parts = [
        release(
            domain,
            counts,
            draw(st.lists(table, min_size=1, max_size=3, unique=True)),
            rng,
            strategies,
            f"release {number}",
        )
        for number in range(draw(st.integers(1, most)))
    ]
    for _ in range(draw(st.integers(0, 2))):
        chosen = tuple(
            attribute_index for attribute_index in draw(table) if attribute_index not in special
        )
        variance = Fraction(int(rng.integers(1, 900)), 30)
        parts.append(noisy_marginal(domain, counts, chosen, rng, variance))
    return World(domain, counts, parts)
