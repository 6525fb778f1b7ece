"""Where the fit begins: the tree of pairs that says most, drawn without chance where it can be."""

import numpy as np

from rpexplore.estimation.seeded_numbers import SeededNumbers
from rpexplore.postprocessing.synthetic.population import PairModel
from rpexplore.postprocessing.synthetic.targets import PairTargets

UNIFORM_SHARE = 0.002  # of independent draws in all targets, so that no potential is without end


def tree_start(model: PairModel, n_records: int, numbers: SeededNumbers) -> np.ndarray:
    """Records of the maximum spanning tree by mutual information (Chow and Liu), int16[n, d].

    Sets the potentials of its pairs. Started from independent attributes, the fit would oscillate.
    What is impossible is replaced by copies of records that are possible.
    """
    codes = np.zeros((n_records, len(model.sizes)), dtype=np.int16)
    for child, parent in spanning_tree(model.targets):
        if parent is None:
            draw_systematically(codes, child, model.targets.one_way[child], numbers)
            continue
        rows, columns = model.block(parent), model.block(child)
        table = model.shares[rows, columns]
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        mixed = (1 - UNIFORM_SHARE) * table + UNIFORM_SHARE * independent
        ratio = np.divide(mixed, independent, out=np.ones_like(mixed), where=independent > 0)
        model.potentials[rows, columns] = np.log(ratio)
        model.potentials[columns, rows] = np.log(ratio).T
        for value in range(model.sizes[parent]):
            chosen = np.flatnonzero(codes[:, parent] == value)
            if len(chosen):
                shares = mixed[value] if mixed[value].sum() > 0 else independent.sum(axis=0)
                draw_systematically(codes, child, shares, numbers, chosen)
    met = model.impossible.are_met(codes)
    if met.all():
        codes[:] = model.impossible.possible_record()
    elif met.any():
        possible = np.flatnonzero(~met)
        taken = (numbers.uniforms(int(met.sum())) * len(possible)).astype(np.int64)
        codes[met] = codes[possible[np.minimum(taken, len(possible) - 1)]]
    return codes


def draw_systematically(
    codes: np.ndarray,
    attribute: int,
    shares: np.ndarray,
    numbers: SeededNumbers,
    chosen: np.ndarray | slice = slice(None),
) -> None:
    """Draw an attribute of some records: each value as often as its share says, within one."""
    cumulative = np.cumsum(shares)
    points = numbers.systematic(len(codes[chosen, attribute])) * cumulative[-1]
    values = np.searchsorted(cumulative, points, side="right")
    # The last value with a share: a point may be rounded up to the end.
    last = np.flatnonzero(shares > 0)[-1]
    codes[chosen, attribute] = np.minimum(values, last)


def spanning_tree(targets: PairTargets) -> list[tuple[int, int | None]]:
    """(attribute, the one it is drawn given), in this order; several roots if pairs are missing.

    Of the largest mutual information (Chow and Liu 1968).
    """
    d = len(targets.sizes)
    information = targets.mutual_information()
    best, parent = np.full(d, -1.0), np.full(d, -1)
    is_left, order = np.ones(d, dtype=bool), []
    totals = information.sum(axis=1)
    while is_left.any():
        left = np.flatnonzero(is_left)
        child = int(left[np.argmax(best[left])])
        if best[child] < 0:
            child = int(left[np.argmax(totals[left])])
        order.append((child, None if best[child] < 0 else int(parent[child])))
        is_left[child] = False
        nearer = is_left & (information[child] > best)
        best[nearer], parent[nearer] = information[child][nearer], child
    return order
