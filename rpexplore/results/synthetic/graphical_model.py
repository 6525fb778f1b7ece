"""Engine "graphical_model": records of a graphical model with exact inference (PrivatePGM).

The same distribution of maximum entropy as the engine "population" (docs/mathematics.md §14.1), of
as many of the pairs as its junction tree has room for: those of the largest mutual information. Its
tables are exact where there are few attributes or a small tree. Needs `mbi` (extra `synthetic`),
and runs in a process of its own, whose memory is limited and which can be ended.

R. McKenna, D. Sheldon and G. Miklau, Graphical-model based estimation and inference for
differential privacy, ICML 2019.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from rpexplore.common.installation import require
from rpexplore.common.processes import Progress, in_other_process, no_progress
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.errors import ReleaseError
from rpexplore.results.synthetic.impossible import Impossible
from rpexplore.results.synthetic.population import draw_systematically, spanning_tree
from rpexplore.results.synthetic.targets import PairTargets

_LARGEST_MODEL = 0.05  # MB of the tables of its junction tree, for half a minute or so
_MOST_PAIRS = 500  # that are tried for room
_ROUNDS = 1000  # of mirror descent, at most
_NO_MORE = 1e-11  # of the loss, in 50 rounds: shares are then right to some 1e-6
_MEMORY = 8 << 30  # bytes
_MOST_CELLS = 100_000  # of an impossible combination


def require_graphical_model() -> None:
    """Raise `MissingExtraError` if `mbi` is not installed."""
    require("mbi", "synthetic", 'the engine "graphical_model" ("population" needs none)')


def graphical_model_records(
    targets: PairTargets,
    n_records: int,
    seed: bytes,
    impossible: Impossible,
    on_progress: Progress = no_progress,
) -> np.ndarray:
    """Records whose tables of the pairs in the model are near the targets, int16[n_records, d].

    No record is impossible. Raises `ReleaseError` if all are, or if the impossible combinations
    alone make the model too large; `MissingExtraError` if `mbi` is not installed.
    """
    require_graphical_model()
    return in_other_process(
        _records,
        targets.without(impossible),
        n_records,
        seed,
        impossible,
        doing="Fitting the graphical model",
        on_progress=on_progress,
    )


def _records(
    targets: PairTargets, n_records: int, seed: bytes, impossible: Impossible
) -> np.ndarray:
    """`graphical_model_records`, in a process of its own."""
    if sys.platform == "linux":
        import resource  # here, as Windows has no such module

        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    os.environ["JAX_PLATFORMS"] = "cpu"
    import_module("jax").config.update("jax_enable_x64", True)
    mbi: Any = import_module("mbi")
    names = [str(attribute) for attribute in range(len(targets.sizes))]
    domain = mbi.Domain(names, targets.sizes)
    constraints = [_constraint(mbi, domain, condition) for condition in impossible.conditions]
    within = [constraint.clique for constraint in constraints]
    pairs = _pairs_with_room(mbi, domain, targets, within)
    tables = {(i,): shares for i, shares in enumerate(targets.one_way)}
    tables |= {pair: targets.pairs[pair] for pair in pairs}
    measurements = [
        mbi.LinearMeasurement(shares.ravel(), tuple(names[i] for i in attributes), 1.0)
        for attributes, shares in tables.items()
    ]
    model = mbi.estimation.MirrorDescent().estimate(
        domain, measurements, known_total=1.0, constraints=constraints, iters=_ROUNDS, tol=_NO_MORE
    )
    return _drawn(mbi, model, n_records, SeededNumbers(seed), constraints)


def _constraint(mbi: Any, domain: Any, condition: Any) -> Any:
    """An impossible combination, as `mbi` has it: every cell of it by itself."""
    values = [np.flatnonzero(members) for members in condition.values()]
    if np.prod([float(len(listed)) for listed in values]) > _MOST_CELLS:
        raise ReleaseError(
            f"An impossible combination has more than {_MOST_CELLS:,} cells, too many for the "
            'engine "graphical_model"; use the engine "population".'
        )
    names = tuple(str(attribute) for attribute in condition)
    return mbi.Constraint(domain=domain.project(names), invalid=np.array(list(product(*values))))


def _pairs_with_room(
    mbi: Any, domain: Any, targets: PairTargets, cliques: Sequence[tuple[str, ...]]
) -> list[tuple[int, int]]:
    """The pairs of the model: the spanning tree, then those that say most, as there is room."""

    def has_room(pairs: Sequence[tuple[int, int]]) -> bool:
        needed = [*cliques, *(tuple(map(str, pair)) for pair in pairs)]
        return mbi.junction_tree.hypothetical_model_size(domain, needed) <= _LARGEST_MODEL

    information = targets.mutual_information()
    tree = {
        (min(child, parent), max(child, parent))
        for child, parent in spanning_tree(targets)
        if parent is not None
    }
    order = sorted(targets.pairs, key=lambda pair: (pair not in tree, -information[pair]))
    chosen: list[tuple[int, int]] = []
    for pair in order[:_MOST_PAIRS]:
        if has_room([*chosen, pair]):
            chosen.append(pair)
    if not has_room(chosen):
        raise ReleaseError(
            "The impossible combinations alone make the graphical model too large; use the engine "
            '"population".'
        )
    return chosen


def _drawn(
    mbi: Any,
    model: Any,
    n_records: int,
    numbers: SeededNumbers,
    constraints: Sequence[Any],
) -> np.ndarray:
    """Records of a model, attribute by attribute given those before, with systematic numbers."""
    needed = [*map(tuple, model.cliques), *(constraint.clique for constraint in constraints)]
    tree, eliminated = mbi.junction_tree.make_junction_tree(model.domain, needed)
    # Not the model's own projection, which knows of no constraint beyond the measured pairs.
    marginals = mbi.marginal_oracles.message_passing_shafer_shenoy(
        model.potentials.expand(list(tree.nodes)), 1.0, constraints=constraints
    )
    codes = np.zeros((n_records, len(model.domain)), dtype=np.int16)
    drawn: list[str] = []
    for name in reversed(eliminated):
        with_name = set().union(*(clique for clique in tree.nodes if name in clique))
        before = [other for other in drawn if other in with_name]
        drawn.append(name)
        shares = np.asarray(
            marginals.project((*before, name)).datavector(flatten=False), dtype=float
        )
        shares = np.maximum(shares, 0.0).reshape(-1, shares.shape[-1])
        sizes = [model.domain[other] for other in before]
        columns = [codes[:, int(other)].astype(np.int64) for other in before]
        groups = np.ravel_multi_index(columns, sizes) if before else np.zeros(n_records, np.int64)
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        for chosen in np.split(order, starts[1:]):
            draw_systematically(codes, int(name), shares[groups[chosen[0]]], numbers, chosen)
    return codes
