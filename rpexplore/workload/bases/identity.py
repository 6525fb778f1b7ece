"""Identity: the single values of an attribute."""

from collections.abc import Callable
from dataclasses import dataclass

from rpexplore.domain.attribute import MAX_SIZE, Attribute
from rpexplore.workload.bases.base import Basis
from rpexplore.workload.bases.operators import Operator, SingleValues


@dataclass(frozen=True)
class Identity(Basis):
    """Each value by itself: n queries about n values. The basis of marginals.

    Example:
        >>> import rpexplore as rp
        >>> rp.Identity().n_rows(rp.Attribute("age", rp.Integers(0, 99)))
        100
    """

    kind = "identity"
    title = "single values"
    option_help = "identity (single values)"
    text_forms = ("identity",)
    min_values = 1
    max_values = MAX_SIZE
    is_identity = True
    ends_with_values = True

    def operator(self, attribute: Attribute) -> Operator:
        return SingleValues(attribute.size)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        return attribute.values.label

    def suffix(self, attribute: Attribute) -> str:
        return ""
