"""Labels that stand beside what they name without lying on each other."""

from collections.abc import Sequence

LONGEST = 30  # characters


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, cut where it is too long for a label."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Where to put labels that belong at these places, at least `gap` apart, as near as can be.

    In the order given; labels that belong at one place keep their order, the first one highest.
    """
    descending = sorted(range(len(places)), key=lambda i: -places[i])
    # Moved together by their rank, "at least a gap apart" is "not ascending": the least-squares
    # answer pools neighbours that would be (as in isotonic regression).
    pools: list[tuple[float, int]] = []  # (mean, how many)
    for rank, i in enumerate(descending):
        mean, count = places[i] + rank * gap, 1
        while pools and pools[-1][0] < mean:
            before, many = pools.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        pools.append((mean, count))
    found = [0.0] * len(places)
    ranked = (mean for mean, count in pools for _ in range(count))
    for rank, (i, mean) in enumerate(zip(descending, ranked, strict=True)):
        found[i] = mean - rank * gap
    return found
