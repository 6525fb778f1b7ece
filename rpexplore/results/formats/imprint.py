"""What only people know of a publication, for the fields of catalogues."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from rpexplore.common.numbers import shown_value
from rpexplore.common.text import is_text
from rpexplore.errors import ReleaseError
from rpexplore.results.formats.export_columns import frequency_of, safe_name


@dataclass(frozen=True)
class Imprint:
    """What only people know of a publication, for the fields of catalogues; all may be left out.

    title      of the publication; the name of the release's folder if left out
    publisher  who publishes it
    license    web address of the licence
    agency     the identifier under which a statistical agency maintains its SDMX structures
    period     when the records are of, for SDMX: 2026, 2026-Q1, 2026-03 or 2026-03-31
    time       the attribute whose values are periods, for SDMX; tables without it, and totals over
               all of its values, have `period`
    records    what a record is called, in the plural and in the language of the texts: "households"

    Raises `ReleaseError` for a text that no file can hold, and for a licence, an agency or a period
    that cannot be one.
    """

    title: str = ""
    publisher: str = ""
    license: str = ""
    agency: str = ""
    period: str = ""
    time: str = ""
    records: str = ""

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            if not is_text(text):
                raise ReleaseError(
                    f"The {name} must be a text that files can hold, got {shown_value(text)}."
                )
        address = urlsplit(self.license)
        if self.license and not (address.scheme in ("http", "https") and address.netloc):
            raise ReleaseError(
                f"The licence must be a web address, got {self.license!r}; give one such as "
                "https://creativecommons.org/licenses/by/4.0/."
            )
        if self.agency and any(safe_name(part) != part for part in self.agency.split(".")):
            raise ReleaseError(
                "The SDMX agency must be an identifier of letters, digits and underscores, parts "
                f"of it divided by full stops, got {self.agency!r}; give one such as ESTAT."
            )
        if self.period and not frequency_of([self.period]):
            raise ReleaseError(
                f"The period must be one as SDMX writes them, got {self.period!r}; give one such "
                "as 2026, 2026-Q1, 2026-03 or 2026-03-31."
            )
