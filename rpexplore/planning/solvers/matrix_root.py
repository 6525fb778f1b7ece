"""The root S = (Λ^½ V Λ^½)^½ that bounds an attribute's accuracy (docs/mathematics.md §5.1)."""

import numpy as np

# A weight is not taken below this: its certificate would drown in rounding, and G of
# `query_root` could not be decomposed.
_LEAST_WEIGHT = 1e-10
# Directions that no question asks about are measured nevertheless, so that R can be decoded; they
# take this share of the root between them.
_UNASKED_SHARE = 5e-7
# From so many values on decompositions are done by halves where they can be, and a search ends
# where R can be mended. Fewer take no time, and are spared what that does to last digits.
MANY_VALUES = 64
_MIRRORED = 1e-13  # relative to the largest number: what differs by less does so by rounding


class MatrixRoot:
    """One eigendecomposition at fixed z: S, the bounds on √τ it gives, and the next λ.

    centred: V(z), the same read backwards if `mirrored`; value_weights: λ. root: T = tr S; error:
    √τ ≤ T·(1 + error) for the R of S.
    roots, vectors: eigenvalues and eigenvectors of S, n − 1 of them: without that of z. state,
    following: log λ, and what follows, as `anderson_acceleration` takes them.
    """

    def __init__(
        self,
        centred: np.ndarray,
        value_weights: np.ndarray,
        reference: np.ndarray,
        *,
        mirrored: bool = False,
    ) -> None:
        if mirrored:
            value_weights = (value_weights + value_weights[::-1]) / 2
        self.value_weights, self.reference = value_weights, reference
        self.halves = np.sqrt(value_weights)
        # V's null vector is z. Lifting it above all others tells it from directions that no
        # question asks about, and makes it the last.
        null = reference / self.halves
        null /= np.linalg.norm(null)
        inner = self.halves[:, None] * centred  # in place from here on: it may be large
        inner *= self.halves
        lift = np.outer(null, null)
        lift *= 2 * np.trace(inner)
        inner += lift
        decompose = mirrored_eigh if mirrored else np.linalg.eigh
        squares, vectors = decompose(inner)
        self.vectors = vectors[:, :-1]
        self.roots = roots_of(squares[:-1])
        self.root = float(self.roots.sum())
        # S_jj / (λ_j T), at the optimum at most 1, and 1 where λ_j > 0 (§5.1).
        ratios = (self.vectors**2 @ self.roots) / value_weights / self.root
        self.error = float(ratios.max() - 1)
        self.state = np.log(value_weights)
        # The multiplicative step λ_j ← S_jj / T.
        self.following = self.state + np.log(np.maximum(ratios, 1e-30))
        self.metric = metric_of(value_weights)

    @property
    def slope(self) -> np.ndarray:
        """∂T/∂z, up to a multiple of 1."""
        return -(self.vectors @ (self.roots * (self.vectors.T @ self.halves))) / self.halves


def is_mirrored(matrix: np.ndarray) -> bool:
    """Whether a square matrix is the same read backwards, up to rounding."""
    return bool(np.abs(matrix - matrix[::-1, ::-1]).max() <= _MIRRORED * np.abs(matrix).max())


def mirrored_eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`numpy.linalg.eigh` of a symmetric matrix that is the same read backwards: a quarter of it.

    Its eigenvectors are the same read backwards, up to their sign: two problems of half the size
    (Cantoni and Butler 1976). Those that change their sign come first, each kind ascending.
    """
    n = len(matrix)
    m = n // 2
    # In the bases (e_i ± e_{n+1−i})/√2 the matrix falls apart into the blocks first ± across.
    first, across = matrix[:m, :m], matrix[:m, ::-1][:, :m]
    even = np.empty((n - m, n - m))
    even[:m, :m] = first + across
    if n > 2 * m:
        # The middle value of an odd number is its own mirror image: it belongs to the even ones.
        even[m, :m] = even[:m, m] = np.sqrt(2) * matrix[:m, m]
        even[m, m] = matrix[m, m]
    of_odd, of_even = np.linalg.eigh(first - across), np.linalg.eigh(even)
    vectors = np.zeros((n, n))
    vectors[:m, :m], vectors[:m, m:] = of_odd[1], of_even[1][:m]
    vectors[:m] *= np.sqrt(0.5)
    vectors[n - m :, :m] = -vectors[:m, :m][::-1]
    vectors[n - m :, m:] = vectors[:m, m:][::-1]
    if n > 2 * m:
        vectors[m, m:] = of_even[1][m]
    return np.append(of_odd[0], of_even[0]), vectors


def weights_of(logs: np.ndarray) -> np.ndarray:
    """λ of its logarithms up to a constant: none is too small, they sum to 1."""
    weights = np.exp(logs - logs.max())
    weights = np.maximum(weights / weights.sum(), _LEAST_WEIGHT)
    return weights / weights.sum()


def roots_of(squares: np.ndarray) -> np.ndarray:
    """Roots of eigenvalues, those of directions that no question asks about a little above 0."""
    total = np.sqrt(np.maximum(squares, 0)).sum()
    return np.sqrt(np.maximum(squares, (_UNASKED_SHARE * total / len(squares)) ** 2))


def metric_of(value_weights: np.ndarray) -> np.ndarray:
    """How much each log λ counts when steps are compared: as λ does, which may be 0 in the end."""
    return value_weights**2 * len(value_weights)


def centred_at(reference: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """V(z) = (I − 1zᵀ) G (I − z1ᵀ)."""
    products = gram @ reference
    # (I − 1zᵀ) G (I − z1ᵀ) = G − 1sᵀ − s1ᵀ with s = Gz − (zᵀGz/2) 1: no product of matrices.
    shift = products - (reference @ products) / 2
    return gram - np.add.outer(shift, shift)
