"""Bound on what replacing a record costs where amounts are nearly products over attributes.

Wanted is at least the largest Σ_S a_S (1 − ∏_{k∈S∩D} y_k) of all D, with y_k = −1/(n_k − 1). Of a
plan for all tables up to 3-way, the amounts a_S of residuals of one order are nearly
b_m ∏_{k∈S} f_k, also where all attributes have sizes of their own. With r_S what a_S is above that,

    Σ a_S (1 − ∏ y_k) ≤ Σ_S b_m ∏_{k∈S} f_k (1 − ∏ y_k) + Σ_S max(r_S, 0) · max_D (1 − ∏ y_k),

as 1 − ∏ y is never negative. The first sum is Σ_m b_m (e_m(f) − e_m(f y)), with e_m the elementary
symmetric polynomials of f_k y_k, y_k = 1 outside of D. By Newton's identities these depend on
p_j = Σ (f_k y_k)^j alone:

    E = b_2 e_2 + b_3 e_3 = b_2 (p_1² − p_2)/2 + b_3 (p_1³ − 3 p_1 p_2 + 2 p_3)/6.

The range of p_1 is cut into intervals [l, h]. In one of them E is at least the least value of
b_2 p²/2 + b_3 l³/6 and a sum over attributes with h in the place of p_1 before p_2. That sum is
least over all D with p_1 in [l, h], which by duality is at least, for any λ, Σ_k min over y_k of

    −(b_2 + b_3 h) f²y²/2 + b_3 f³y³/3 + a_k y + λ f y,    less max(λ l, λ h).

Amounts of one attribute, a_k, stand in it as they are.

Where h is near the least p_1, few attributes are outside of D: Σ f_k (1 − y_k) of these is at most
τ = h − min p_1. What amounts differ from products by, r_S of either sign, then counts nearly as
where all are in D: Σ r_S (1 − ∏_{k∈S} y_k), and by what that is off at most

    τ max_k (A_k + τ max_j B_kj/w_j) / f_k,    w_j = f_j (1 − y_j),
    A_k = Σ_{S∋k} |r_S| ∏_{j∈S∖k} |y_j|,    B_kj = Σ_{S∋k,j} |r_S|:

∏ y of S changes by at most Σ (1 − y_k) over its attributes outside of D, times |y_j| of the others
if these are in D. So in each interval the better of the two bounds counts.
"""

import numpy as np

_ORDERS = 3
_SCALINGS = 200  # rounds in which f gets the sums that the amounts of each attribute have
_LOWERED = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 1.0)  # so that few amounts are below
_INTERVALS, _FINE = 400, 400  # of p_1: all of its range, and near its least value
_MULTIPLIERS = 160  # λ that are tried
_ROUNDING = 1e-11  # of the amounts together: far above that of a few hundred terms of this size


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # the result is looked at
def product_bound(members: np.ndarray, sizes: np.ndarray, amounts: np.ndarray) -> float:
    """At least the largest Σ a_S (1 − ∏ y) of all D; infinite where it cannot be computed.

    It cannot for residuals of four attributes, nor of amounts that are too far apart for floats.

    members     int[n_residuals, max_order], padded with −1
    sizes       of attributes; amounts: a_S, float64[n_residuals] ≥ 0, of the total any
    """
    orders = np.count_nonzero(members >= 0, axis=1)
    if members.shape[1] > _ORDERS or np.max(orders, initial=0) < 2:
        return np.inf
    total = float(np.sum(amounts[orders > 0]))
    if not 0 < total < np.inf:
        return np.inf
    y = -1 / np.maximum(sizes - 1.0, 1.0)  # of an attribute of one value there is no residual
    alone = np.bincount(members[orders == 1, 0], amounts[orders == 1], len(sizes))
    # f is that of the order with most amounts; the total is nothing's part.
    largest = max((2, 3), key=lambda order: float(np.sum(amounts[orders == order])))
    longest = members[orders == largest, :largest]
    if not np.any(amounts[orders == largest] > 0):
        return np.inf
    factors = _factors(longest, amounts[orders == largest], len(sizes))
    least_y = -1 / (np.min(np.append(sizes, np.inf)[members], axis=1) - 1.0)
    scales, above, fitted = np.zeros(_ORDERS + 1), 0.0, np.zeros(_ORDERS + 1)
    for order in (2, 3):
        of_order = orders == order
        own = amounts[of_order]
        products = np.prod(factors[members[of_order, :order]], axis=1)
        shares = 1 - least_y[of_order]
        scale = float(np.sum(own)) / max(float(np.sum(products)), 1e-300)
        # What is above its product counts at its largest share; what is below, nothing, so that
        # as much as its share is lost.
        tried = []
        for lowered in _LOWERED:
            left = own - scale * (1 - lowered) * products
            lost = np.sum(np.maximum(left, 0.0) * (shares - 1)) - np.sum(np.minimum(left, 0.0))
            tried.append((float(lost), lowered, float(np.sum(np.maximum(left, 0.0) * shares))))
        _, lowered, of_left = min(tried)
        scales[order], fitted[order] = scale * (1 - lowered), scale
        above += of_left
    e2, e3 = _symmetric(factors)

    def at_scales(of_orders: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        product = of_orders[2] * e2 + of_orders[3] * e3 + float(np.sum(alone))
        ends, least = _least_of_products(factors, y, alone, of_orders[2], of_orders[3])
        return ends, product - least

    ends, bounds = at_scales(scales)
    bounds = bounds + above
    if np.argmax(bounds) < _FINE:  # else all in D is not what costs most
        left = amounts - fitted[orders] * np.prod(np.append(factors, 1.0)[members], axis=1)
        left[orders < 2] = 0.0
        near = at_scales(fitted)[1] + _near_all(members, left, factors, y, ends)
        bounds = np.fmin(bounds, near)
    bound = float(np.max(bounds)) + _ROUNDING * total
    # Amounts that are many orders of magnitude apart leave what floats hold on the way.
    return bound if np.isfinite(bound) else np.inf


def _factors(members: np.ndarray, amounts: np.ndarray, n: int) -> np.ndarray:
    """f whose products, over all sets of this order, have the sums of amounts by attribute."""
    order = members.shape[1]
    wanted = np.zeros(n)
    for column in range(order):
        wanted += np.bincount(members[:, column], amounts, n)
    factors = np.where(wanted > 0, np.sqrt(wanted / np.max(wanted)), 0.0)
    for _ in range(_SCALINGS):
        p1, p2 = np.sum(factors), np.sum(factors**2)
        # The elementary symmetric polynomial of the others, of an order one lower.
        others = p1 - factors
        if order == _ORDERS:
            others = (others**2 - (p2 - factors**2)) / 2
        found = np.divide(wanted, others, out=np.zeros(n), where=(wanted > 0) & (others > 0))
        # Half of the way, in logarithms: the whole way would swing.
        moved = np.sqrt(factors * found)
        if np.allclose(moved, factors, rtol=1e-10, atol=0):
            break
        factors = moved
    return factors


def _symmetric(values: np.ndarray) -> tuple[float, float]:
    """e_2 and e_3."""
    p1, p2, p3 = (float(np.sum(values**power)) for power in (1, 2, 3))
    return (p1**2 - p2) / 2, (p1**3 - 3 * p1 * p2 + 2 * p3) / 6


def _near_all(
    members: np.ndarray, left: np.ndarray, factors: np.ndarray, y: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """At least the largest Σ r_S (1 − ∏ y) of all D whose p_1 is at most each of these ends.

    left: r_S, float64[n_residuals]; infinite where f is 0 and r is not
    """
    n = len(factors)
    of_members = np.append(y, 1.0)[members]
    in_all = float(np.sum(left * (1 - np.prod(of_members, axis=1))))
    beside, pairs = np.zeros(n), np.zeros((n, n))
    for column in range(members.shape[1]):
        inside = members[:, column] >= 0
        others = np.delete(of_members, column, axis=1)
        amounts = np.abs(left) * np.prod(np.abs(others), axis=1)
        beside += np.bincount(members[inside, column], amounts[inside], n)
        for other in range(column):
            both = inside & (members[:, other] >= 0)
            flat = members[both, column] * n + members[both, other]
            pairs += np.bincount(flat, np.abs(left[both]), n * n).reshape(n, n)
    pairs += pairs.T
    # 0 / 0 is 0: what is in no residual.
    weights = factors * (1 - y)
    of_pairs = np.nan_to_num(np.max(np.where(pairs > 0, pairs / weights, 0.0), axis=1), nan=np.inf)
    far = np.maximum(ends - float(np.sum(factors * y)), 0.0)[:, np.newaxis]
    amounts = beside + far * of_pairs
    off = np.max(np.where(amounts > 0, amounts / factors, 0.0), axis=1)
    return in_all + far[:, 0] * off


def _least_of_products(
    factors: np.ndarray, y: np.ndarray, alone: np.ndarray, b2: float, b3: float
) -> tuple[np.ndarray, np.ndarray]:
    """At most the least b_2 e_2(f y) + b_3 e_3(f y) + Σ a_k y_k of D, by intervals of p_1.

    The upper ends of these, and that for each: float64[n] each
    """
    lowest, highest = float(np.sum(factors * y)), float(np.sum(factors))
    near = min(highest, lowest + (highest - lowest) / 20)
    ends = np.unique(
        np.concatenate(
            [np.linspace(lowest, near, _FINE + 1), np.linspace(near, highest, _INTERVALS + 1)]
        )
    )
    # Outside of its ends by more than the rounding of sums.
    slack = 1e-12 * max(highest, -lowest)
    low, high = ends[:-1] - slack, ends[1:] + slack
    square = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(low**2, high**2))
    fixed = b2 * square / 2 + b3 * low**3 / 6
    # Of y = 1 and y_k, float64[2, n].
    moved = np.stack([factors, factors * y])
    rest = b3 * moved**3 / 3 + np.stack([alone, alone * y])
    largest = float(np.max((b2 + b3 * highest) * factors)) + float(
        np.max(np.divide(alone, factors, out=np.zeros(len(factors)), where=factors > 0))
    )
    steps = largest * np.geomspace(1e-6, 1e2, _MULTIPLIERS // 2)
    multipliers = np.concatenate([-steps[::-1], [0.0], steps])
    best = np.full(len(low), -np.inf)
    quadratic = -(b2 + b3 * high) / 2
    for multiplier in multipliers.tolist():
        values = rest + multiplier * moved
        sums = np.zeros(len(low))
        for with_it, without, squares in zip(values[0], values[1], (moved**2).T, strict=True):
            sums += np.minimum(with_it + quadratic * squares[0], without + quadratic * squares[1])
        best = np.maximum(best, sums - np.maximum(multiplier * low, multiplier * high))
    return high, fixed + best
