"""Which standard errors are the same, as far as anybody would notice."""

SAME = 1.005  # a factor


def are_same(low: float, high: float) -> bool:
    """Whether nobody would notice how much larger the second standard error is."""
    return high <= low * SAME
