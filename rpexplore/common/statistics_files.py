"""Files of statistics packages, SPSS, Stata and SAS: which they are, and how pyreadstat is asked.

pyreadstat is an optional dependency, and code in C that a damaged file can crash: files are read in
another process (`dictionary` here, records in `data.files`).
"""

import codecs
import io
import os
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from rpexplore.common.files import HEAD
from rpexplore.common.installation import require
from rpexplore.common.processes import in_other_process
from rpexplore.errors import RpexploreError

PACKAGES = {
    "sav": "SPSS", "zsav": "SPSS", "por": "SPSS", "dta": "Stata", "sas7bdat": "SAS", "xpt": "SAS",
}  # fmt: skip
"""Of which package a file is, by its ending."""

_STATISTICS_BEGINNINGS = {
    b"$FL2@(#)": "sav",
    b"$FL3@(#)": "sav",
    b"<stata_dta>": "dta",
    bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf": "sas7bdat",
    b"HEADER RECORD*******LIB": "xpt",
}
# Stata before its version 13: the version, the order of bytes, and 1.
_OLD_STATA = re.compile(rb"[\x66-\x73][\x01\x02]\x01\x00", re.DOTALL)
# A portable file of SPSS says so in its title, and behind its table of characters.
_PORTABLE_SPSS = (b"SPSS PORT FILE", b"SPSSPORT")
_READERS = {
    "sav": "read_sav", "zsav": "read_sav", "por": "read_por", "dta": "read_dta",
    "sas7bdat": "read_sas7bdat", "xpt": "read_xport",
}  # fmt: skip
# How dates are shown, and so which numbers are dates: (form, first day, unit).
_DATES = {
    "SPSS": (
        (r"([AEJS]?DATE|QYR|MOYR|WKYR)\d*", "1582-10-14", "day in s"),
        (r"(DATETIME|YMDHMS)[\d.]*", "1582-10-14", "s"),
    ),
    "Stata": (
        (r"%-?(td|d).*", "1960-01-01", "day"),
        (r"%-?tc.*", "1960-01-01", "ms"),
        (r"%-?tm.*", "1960-01-01", "month"),
        (r"%-?tq.*", "1960-01-01", "quarter"),
    ),
    "SAS": (
        (
            r"(DATE|WEEKDAT[EX]|WORDDAT[EX]|(MMDDYY|DDMMYY|YYMMDD)[BCDNPS]?|(IS|E|B|ND)8601DA|NLDATE"
            r"[A-Z]*|(MMYY|YYMM|YYQR?)[CDNPS]?|YYQZ|YYMON|MONYY|MONNAME|MONTH|YEAR|QTRR?|DAY|DOWNAME"
            r"|WEEKDAY|(YYWEEK|WEEK)[UVW]|JULDAY|JULIAN|PDJUL[GI]|NENGO|MINGUO|HEBDATE|HDATE"
            r"|[A-Z]{3}DF(DD|DE|DN|DWN|MN|MY|WDX|WKX))\d*",
            "1960-01-01",
            "day",
        ),
        (
            r"(DATETIME|DATEAMPM|MDYAMPM|DT(DATE|MONYY|YEAR|WKDATX|YYQC)|NLDATM[A-Z]*"
            r"|(IS|E|B)8601(DT|DN)|[A-Z]{3}DFDT)[\d.]*",
            "1960-01-01",
            "s",
        ),
    ),
}
# Times, and what counts days in a way that no other source has: weeks and half-years of Stata, its
# calendars of business days and leap seconds; times of SAS that are shown in a zone.
_TIMES = {
    "SPSS": r"[DM]?TIME[\d.]*",
    "Stata": r"%-?t[whbC].*",
    "SAS": r"(TIME|TIMEAMPM|HHMM|HOUR|MMSS|TOD|NLTIM[A-Z]*|(IS|E|B)8601(TM|TZ|TX|L[XZ]|D[XZ]))"
    r"[\d.]*",
}
_FIRST_STATA_IN_UTF8 = 118  # of Stata 14
# The code of characters in a file of SPSS: none, ASCII of 7 or 8 bits, or windows-1252, which are
# written whatever the texts are in.
_CODES_OF_NO_ENCODING = (0, 2, 3, 1252)
_NO_DIGITS = 11  # bits of a number of SAS: its sign and exponent, but for a digit that is left out
_WITHOUT_MISSING = (
    "por",
    "xpt",
)  # formats of which pyreadstat tells no user-defined missing values


@dataclass(frozen=True)
class DictionaryVariable:
    """A variable as the dictionary of such a file describes it.

    kind     "text", "whole numbers", "numbers", "dates", or "times": of day, durations, and dates
             that are counted in another way than by days, months or quarters
    dates    of dates, which are kept as numbers: the first day, and the unit they are counted in
    labels   by value, a number or a text; a letter (or "_") of a variable of numbers stands for
             an extended missing value: .a of Stata, .A of SAS
    missing  ranges of user-defined missing values, (first, last), both included
    is_single  whether it holds floating point numbers of 32 bits, as those of Stata may
    is_weight  whether the file is saved with it as the case weight (SPSS: WEIGHT BY)
    exact_below  whole numbers below it are stored as they were; larger ones may be rounded
    """

    name: str
    label: str
    kind: str
    dates: tuple[str, str] | None = None
    labels: Mapping[Any, str] = field(default_factory=dict)
    missing: tuple[tuple[Any, Any], ...] = ()
    is_single: bool = False
    is_weight: bool = False
    exact_below: float = 2.0**53


def statistics_format(head: bytes, filename: str) -> str | None:
    """The format of a file by its first bytes or its ending, a key of `PACKAGES`; None: another."""
    for beginning, form in _STATISTICS_BEGINNINGS.items():
        if head.startswith(beginning):
            return form
    if _OLD_STATA.match(head):
        return "dta"
    # Lines of 80 characters may break within the mark.
    if any(mark in head.replace(b"\r", b"").replace(b"\n", b"") for mark in _PORTABLE_SPSS):
        return "por"
    ending = Path(filename).suffix.lower().removeprefix(".")
    return ending if ending in PACKAGES else None


def dictionary(
    content: bytes | Path,
    form: str,
    name: str,
    error: type[RpexploreError],
    encoding: str | None = None,
) -> tuple[DictionaryVariable, ...]:
    """The variables of a file, of which no record is read.

    Args:
        content: What it holds, or where it is.
        form: As of `statistics_format`.
        name: What errors call it.
        encoding: Of its texts, as Python calls it; None for the one that it states, or else as of
            `StoredTexts`.

    Raises:
        error: For a file that cannot be read.
        MissingExtraError: Without pyreadstat.
    """
    require("pyreadstat", "formats", f"{name}, a file of {PACKAGES[form]}")
    if isinstance(content, bytes):
        return _in_other_process(content, form, name, error, encoding)
    try:
        status = content.stat()
    except OSError as problem:
        raise error(f"{name} cannot be read ({problem.strerror}); check the path.") from None
    states = (_state(status),)
    if catalog := catalog_beside(content, form):
        states += (_state(catalog.stat()),)
    return _of_path(content, states, form, name, error, encoding)


def catalog_beside(path: Path, form: str) -> Path | None:
    """The catalog in which SAS keeps the labels of a file: its name, or formats.sas7bcat."""
    if form != "sas7bdat":
        return None
    catalogs = (path.with_suffix(".sas7bcat"), path.with_name("formats.sas7bcat"))
    return next((catalog for catalog in catalogs if catalog.is_file()), None)


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ino


@lru_cache(maxsize=16)
def _of_path(
    path: Path,
    states: tuple[tuple[int, ...], ...],
    form: str,
    name: str,
    error: type[RpexploreError],
    encoding: str | None,
) -> tuple[DictionaryVariable, ...]:
    """The variables of the file, while it and its catalog are in these states."""
    return _in_other_process(path, form, name, error, encoding)


def _in_other_process(
    content: bytes | Path,
    form: str,
    name: str,
    error: type[RpexploreError],
    encoding: str | None,
) -> tuple[DictionaryVariable, ...]:
    ended = damaged(form, name, error)
    return in_other_process(_dictionary, content, form, name, error, encoding, ended=ended)


def damaged(form: str, name: str, error: type[RpexploreError]) -> RpexploreError:
    """The error for a file that pyreadstat cannot read."""
    return error(
        f"{name} is no file of {PACKAGES[form]}, or a damaged one; save it there anew, or as CSV."
    )


@contextmanager
def readable(form: str, name: str, error: type[RpexploreError]) -> Iterator[None]:
    """A block in which pyreadstat reads: what it raises is told as `error`."""
    try:
        yield
    except (RpexploreError, OSError):
        raise
    except Exception as problem:  # of pyreadstat, but also of Python about texts, dates and sizes
        if isinstance(problem, UnicodeError) or "encoding" in str(problem):
            raise error(
                f"{name} is in an encoding that cannot be read; name the one of its texts "
                "(--encoding windows-1250), save it in UTF-8 (in SPSS: SET UNICODE=ON), or as CSV."
            ) from None
        raise damaged(form, name, error) from None


def read_part(file: BinaryIO, form: str, **options: Any) -> tuple[Any, Any]:
    """Read an open file with pyreadstat: the records as a DataFrame, and the dictionary.

    User-defined missing values are read as they are. To be called in another process.
    """
    import warnings

    import pyreadstat

    options |= {"disable_datetime_conversion": True}
    if form not in _WITHOUT_MISSING:
        options["user_missing"] = True
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns of one name, of which the second is renamed
        return getattr(pyreadstat, _READERS[form])(file, **options)


def _dictionary(
    content: bytes | Path,
    form: str,
    name: str,
    error: type[RpexploreError],
    encoding: str | None = None,
) -> tuple[DictionaryVariable, ...]:
    with (
        readable(form, name, error),
        content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file,
    ):
        path = content if isinstance(content, Path) else None
        return read_dictionary(file, form, path, name, error, encoding)[0]


def read_dictionary(
    file: BinaryIO,
    form: str,
    path: Path | None,
    name: str,
    error: type[RpexploreError],
    encoding: str | None = None,
) -> tuple[tuple[DictionaryVariable, ...], Any, "StoredTexts"]:
    """The variables of an open file, what pyreadstat says of it, and how it stores its texts.

    What pyreadstat says has texts as they are stored. For another process.

    path: where the file is, if anywhere, so that a catalog beside it is found
    """
    weight, states_encoding = _encoding_and_weight(file, form)
    texts = StoredTexts(encoding, name, error, are_known=states_encoding and encoding is None)
    # As a dict: a DataFrame would take the import of pandas, longer than all else.
    _, said = read_part(file, form, **texts.options, metadataonly=True, output_format="dict")
    if path is not None and (catalog := catalog_beside(path, form)):
        try:
            labels = _labels_of_catalog(catalog, texts)
        except Exception:  # pyreadstat's, of whatever kind
            raise error(
                f"The catalog {catalog.name!r} beside {name} cannot be read; make it anew in SAS, "
                "or move it elsewhere to do without labels."
            ) from None
        said.variable_value_labels = {
            variable: labels.get(label_set, {})
            for variable, label_set in said.variable_to_label.items()
        }
    variables = (
        _variable(
            form,
            texts.read(name),
            texts.read_label(label or ""),
            said.readstat_variable_types[name],
            said.original_variable_types[name] or "",
            said.variable_storage_width[name],
            {
                texts.read(value): texts.read_label(shown)
                for value, shown in said.variable_value_labels.get(name, {}).items()
            },
            tuple(
                (texts.read(part["lo"]), texts.read(part["hi"]))
                for part in said.missing_ranges.get(name, ())
            ),
        )
        for name, label in zip(said.column_names, said.column_labels, strict=True)
    )
    weight_name = texts.read(weight.decode("latin-1" if texts.options else "utf-8", "replace"))
    return tuple(replace(one, is_weight=one.name == weight_name) for one in variables), said, texts


class StoredTexts:
    """The texts of a file that does not say in which encoding they are: UTF-8 or windows-1252.

    Stata before its version 14, transport files of SAS, and old or foreign files of SPSS. Their
    programs wrote texts as the system had them, and others write UTF-8. pyreadstat gives each byte
    as a character (ISO-8859-1); all texts that are not ASCII must then be UTF-8, or none:
    hardly any text in another encoding is.
    """

    def __init__(
        self, encoding: str | None, name: str, error: type[RpexploreError], *, are_known: bool
    ) -> None:
        """encoding: one that is named, as Python calls it; are_known: whether the file says it."""
        self.options = {} if are_known else {"encoding": "ISO-8859-1"}
        self._are_known, self._is_named = are_known, encoding is not None
        self._encoding, self._name, self._error = encoding, name, error

    def read(self, stored: Any) -> Any:
        """A text as it was meant; a number as it is."""
        if not isinstance(stored, str) or self._is_plain(stored):
            return stored
        content = stored.encode("latin-1")
        return content.decode(self._encoding_of(content))

    def read_label(self, stored: str) -> str:
        """A text that may be cut off within a character, as labels of 80 bytes are."""
        if self._is_plain(stored):
            return stored
        content = stored.encode("latin-1")
        return codecs.getincrementaldecoder(self._encoding_of(content))().decode(content)

    def _is_plain(self, stored: str) -> bool:
        return self._are_known or (stored.isascii() and not self._is_named)

    def _encoding_of(self, content: bytes) -> str:
        """The encoding of all texts, if need be by this one.

        Raises the error where a text before this one had another encoding.
        """
        if self._is_named and self._encoding is not None:
            return self._encoding
        try:
            is_utf8 = not codecs.getincrementaldecoder("utf-8")().decode(content).isascii()
        except UnicodeDecodeError:
            is_utf8 = False
        encoding = "utf-8" if is_utf8 else "windows-1252"
        if self._encoding not in (None, encoding):
            raise self._error(
                f"{self._name} does not say in which encoding its texts are, and some are UTF-8, "
                "others not; name the one that holds (--encoding windows-1252, in Python "
                'FileSource(path, "windows-1252")), or save it in UTF-8.'
            )
        self._encoding = encoding
        return encoding


def states_encoding(path: Path, form: str, name: str, error: type[RpexploreError]) -> bool:
    """Whether a file states the encoding of its texts; `form` and `error` as of `dictionary`."""
    with readable(form, name, error), path.open("rb") as file:
        return _encoding_and_weight(file, form)[1]


def _encoding_and_weight(file: BinaryIO, form: str) -> tuple[bytes, bool]:
    """The variable that a file of SPSS is weighted by, and whether a file states its encoding.

    pyreadstat tells neither. The weight is as it is stored.
    """
    if form == "dta":
        file.seek(0)
        release = re.match(rb"<stata_dta><header><release>(\d+)<", file.read(HEAD))
        return b"", release is not None and int(release[1]) >= _FIRST_STATA_IN_UTF8
    if form not in ("sav", "zsav"):
        return b"", form != "xpt"
    short, code, states_encoding = b"", 0, False
    long: dict[bytes, bytes] = {}
    for subtype, content, order in _extensions_of_spss(file):
        if subtype == 0:
            short = content.rstrip()
        elif subtype == 3 and len(content) >= 32:
            (code,) = struct.unpack(f"{order}i", content[28:32])
        elif subtype == 13:
            pairs = (pair.partition(b"=") for pair in content.split(b"\t"))
            long |= {before: after for before, _, after in pairs}
        elif subtype == 20:
            states_encoding = True
    states_encoding |= code not in _CODES_OF_NO_ENCODING
    return long.get(short, short), states_encoding


def _extensions_of_spss(file: BinaryIO) -> Iterator[tuple[int, bytes, str]]:
    """The extensions of the dictionary of SPSS: subtype, content, order of bytes.

    As one of subtype 0 the short name of the variable that it is weighted by, if by any. The header
    has the number of its record among those of variables (at byte 76, 0 for none). These follow
    it, of 32 bytes each with their labels and missing values behind, and have the short names; an
    extension (13) has the long ones.
    https://www.gnu.org/software/pspp/pspp-dev/html_node/System-File-Format.html
    """
    file.seek(0)
    header = file.read(176)
    order = "<" if header[64:68] in (b"\2\0\0\0", b"\3\0\0\0") else ">"

    def numbers(n: int) -> tuple[int, ...]:
        return struct.unpack(f"{order}{n}i", file.read(4 * n))

    def skip(n_bytes: int) -> None:
        if n_bytes < 0:
            raise ValueError("a damaged dictionary")
        file.seek(n_bytes, os.SEEK_CUR)

    (index,) = struct.unpack(f"{order}i", header[76:80])
    n_variables = 0
    while True:
        (kind,) = numbers(1)
        if kind == 2:
            _, has_label, n_missing, _, _ = numbers(5)
            name = file.read(8)
            n_variables += 1
            if n_variables == index:
                yield 0, name, order
            if has_label:
                skip(-(-numbers(1)[0] // 4) * 4)
            skip(8 * abs(n_missing))
        elif kind == 3:  # labels of values, and in the record behind them of which variables
            for _ in range(numbers(1)[0]):
                length = file.read(9)[8]
                skip(-(-(length + 1) // 8) * 8 - 1)
            skip(4 * numbers(2)[1])
        elif kind == 6:
            skip(80 * numbers(1)[0])
        elif kind == 7:
            subtype, size, count = numbers(3)
            if size < 0 or count < 0:
                raise ValueError("a damaged dictionary")
            yield subtype, file.read(size * count), order
        else:
            return


def _labels_of_catalog(catalog: Path, texts: StoredTexts) -> Mapping[str, Mapping[Any, str]]:
    """The labels by value of each format of SAS in its catalog; of ranges by their first values."""
    import pyreadstat

    _, said = pyreadstat.read_sas7bcat(catalog, output_format="dict", **texts.options)
    # The label of all other values (OTHER) has no value.
    return {
        name: {value: label for value, label in labels.items() if value is not None}
        for name, labels in said.value_labels.items()
    }


def _variable(
    form: str, name: str, label: str, stored: str, shown_as: str, width: int, *more: Any
) -> DictionaryVariable:
    """width: bytes of a value; of numbers SAS cuts off those behind them"""
    if stored.startswith("string"):
        return DictionaryVariable(name, label, "text", None, *more)
    for pattern, first_day, unit in _DATES[PACKAGES[form]]:
        if re.fullmatch(pattern, shown_as):
            return DictionaryVariable(name, label, "dates", (first_day, unit), *more)
    if re.fullmatch(_TIMES.get(PACKAGES[form], "(?!)"), shown_as):
        return DictionaryVariable(name, label, "times", None, *more)
    is_whole = stored.startswith("int") or re.fullmatch(r"F\d+(\.0)?", shown_as)
    kind, is_single = "whole numbers" if is_whole else "numbers", stored == "float"
    digits = 8 * min(width, 8) - _NO_DIGITS if PACKAGES[form] == "SAS" else 24 if is_single else 53
    return DictionaryVariable(
        name, label, kind, None, *more, is_single=is_single, exact_below=2.0**digits
    )
