"""Measures of accuracy: the standard error, the coefficient of variation and the variance."""

from dataclasses import dataclass

from rpexplore.common.formatting import rounded


@dataclass(frozen=True)
class Measure:
    """A measure of the accuracy of a cell, larger where that is less accurate.

    title     of a choice
    noun      in a sentence; nouns: several of them
    symbol    in a heading
    column    of a frame
    power     of the standard error that it goes with
    is_share  whether it is a share of a count, written in per cent, and not a number of records
    """

    title: str
    noun: str
    nouns: str
    symbol: str
    column: str
    power: int = 1
    is_share: bool = False

    def text(self, value: float, digits: int = 3, *, zeros: bool = False) -> str:
        """A value without its unit, but for the sign of per cent: "12.3", "4.1 %"."""
        if self.is_share:
            return f"{rounded(100 * value, digits, zeros=zeros)} %"
        return rounded(value, digits, zeros=zeros)

    def unit(self, record_noun: str) -> str:
        """ "people", "people²"; "" of shares."""
        if self.is_share:
            return ""
        return record_noun if self.power == 1 else f"{record_noun}²"

    def stated(
        self, value: float, record_noun: str, digits: int = 3, *, zeros: bool = False
    ) -> str:
        """A value with its unit: "12.3 people", "4.1 %", "151 people²"."""
        return f"{self.text(value, digits, zeros=zeros)} {self.unit(record_noun)}".rstrip()

    def from_typed(self, number: float) -> float:
        """The value that is typed as this number: shares are typed in per cent."""
        return number / 100 if self.is_share else number

    def to_type(self, value: float) -> float:
        """The number to type for a value, of four digits, rounded up."""
        number = 100 * value if self.is_share else value
        return float(rounded(number, 4, "up").replace(",", ""))

    def label(self, record_noun: str, remark: str = "") -> str:
        """Of an axis: "standard error of a cell (people, log scale)"."""
        remarks = ", ".join(filter(None, [self.unit(record_noun), remark]))
        return f"{self.noun} of a cell" + (f" ({remarks})" if remarks else "")

    @property
    def hover(self) -> str:
        """How Plotly writes a value."""
        return ".3~p" if self.is_share else ",.3~g"


STANDARD_ERROR = Measure(
    "Standard error", "standard error", "standard errors", "σ", "standard_error"
)
COEFFICIENT_OF_VARIATION = Measure(
    "CV",
    "coefficient of variation",
    "coefficients of variation",
    "CV",
    "coefficient_of_variation",
    is_share=True,
)
VARIANCE = Measure("Variance", "variance", "variances", "σ²", "variance", power=2)
