"""Texts: numbers as people read and type them, names, CSV and YAML."""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from rpexplore.common.numbers import exact_fraction, shown, shown_few, shown_value
from rpexplore.errors import BudgetError, RpexploreError

if TYPE_CHECKING:
    import pandas as pd


# ---- Numbers as people read them: rounded to what matters, with thousands separators. And paths.


_MODES = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}
_SCALES = [(10**12, "trillion"), (10**9, "billion"), (10**6, "million")]
_BYTES = [(10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")]
_TIMES = [(86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")]


def rounded(
    value: float | Fraction, digits: int = 2, mode: str = "nearest", *, zeros: bool = False
) -> str:
    """A number with so many significant digits: "24", "1,300", "0.035", "1.2e-7".

    mode: "nearest", or "up" or "down" for bounds that must stay bounds. zeros: "14.0" stays so.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "∞" if value > 0 else "unknown"
    context = _context(digits, mode)
    if isinstance(value, float):  # in one step, which pages take hundreds of times
        short = context.plus(Decimal(value))
    else:
        exact = Fraction(value)
        short = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    if short == 0:
        return "0"
    if not -6 <= short.adjusted() < 15:
        return f"{short.normalize():.{digits - 1}e}".replace("e+", "e")
    # Whole parts stay whole: 1,298 to two digits is 1,300, not 1.3E+3.
    if zeros:
        return f"{short:,.{max(digits - 1 - short.adjusted(), 0)}f}"
    text = f"{short:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@cache
def _context(digits: int, mode: str) -> Context:
    return Context(prec=digits, rounding=_MODES[mode])


def describe_numbers(values: Iterable[float]) -> list[str]:
    """Numbers of a column, four significant digits each."""
    return [rounded(value, 4, zeros=True) for value in values]


@lru_cache(maxsize=1 << 13)  # a page states hundreds, as do others with the same forecast
def describe_share(share: float, digits: int = 2) -> str:
    """A share as a percentage: "24 %", "0.0006 %", "99.7 %"; "100 %" and "0 %" only where exact."""
    for more in range(digits, 5):
        text = rounded(100 * share, more)
        if share == 1 or text != "100":
            return f"{text} %"
    return "over 99.99 %"


def small(value: Fraction) -> str:
    """A small probability, rounded up to six digits: "1e-9", "0.001"."""
    up = Context(prec=6, rounding=ROUND_CEILING)
    short = up.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{float(short):.6g}".replace("e-0", "e-")


def describe_count(count: int) -> str:
    """A whole number for a sentence: "67", "166,751", "about 3.4 trillion", "about 10^23"."""
    if count < 10**6:
        return f"{count:,}"
    if count >= 10**15:
        # Not by its digits: Python does not print integers of more than 4,300 of them.
        exponent = round(math.log10(count))
        return f"about 10^{exponent - (10**exponent > count)}"
    scale, name = next((scale, name) for scale, name in _SCALES if count >= scale)
    return f"about {rounded(Fraction(count, scale), 2)} {name}"


def capitalised(text: str) -> str:
    """A text with a capital in front, for a label or a sentence."""
    return text[:1].upper() + text[1:]


def numbered_apart(texts: Iterable[str]) -> list[str]:
    """The texts, later ones that are alike with a number: "a", "a (2)"."""
    taken: dict[str, None] = {}
    for text in texts:
        name, number = text, 1
        while name in taken:
            number += 1
            name = f"{text} ({number})"
        taken[name] = None
    return list(taken)


def plural(count: int, noun: str) -> str:
    """ "1 table", "67 tables", "1,200 queries", with thousands separators."""
    return f"1 {noun}" if count == 1 else f"{count:,} {plural_noun(noun)}"


def plural_noun(noun: str) -> str:
    """The plural of an English noun: "records", "companies", "branches", "children"."""
    if noun.endswith(("child", "Child")):
        return f"{noun}ren"
    if re.search("([Mm]an)$", noun) and not noun.endswith("human"):
        return f"{noun[:-2]}en"
    if re.search("[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


_SINGULARS = {"people": "person", "persons": "person", "children": "child", "men": "man"}
_ENDS_IN_S = ("ss", "us", "is", "series", "species", "lens", "gas", "news", "canvas", "atlas")


def singular_noun(noun: str) -> str:
    """The singular of an English noun in the plural; others as they are."""
    if noun in _SINGULARS:
        return _SINGULARS[noun]
    if noun.endswith("women"):
        return f"{noun[:-2]}an"
    if not noun.endswith("s") or noun.endswith(_ENDS_IN_S):
        return noun
    if re.search("[^aeiou]ies$", noun):
        return f"{noun[:-3]}y"
    return noun[:-2] if re.search("(ss|x|ch|sh)es$", noun) else noun[:-1]


def with_article(noun: str) -> str:
    """ "a household", "an enterprise", "a user"."""
    is_vowel = re.match("[aeiou]", noun, re.IGNORECASE) and not re.match("(eu|one|uni|us)", noun)
    return f"an {noun}" if is_vowel or noun.startswith("hour") else f"a {noun}"


def data_size(n_bytes: float) -> str:
    """A rough amount of data: "12 MB", "0.52 GB"."""
    scale, name = next((unit for unit in _BYTES if n_bytes >= unit[0]), _BYTES[-1])
    return f"{rounded(n_bytes / scale)} {name}"


def duration(seconds: float) -> str:
    """A rough time: "1 second", "7 minutes", "2 days"."""
    scale, name = next((unit for unit in _TIMES if seconds >= 1.5 * unit[0]), _TIMES[-1])
    return plural(max(round(seconds / scale), 1), name)


def time_of_change(seconds: float) -> datetime:
    """When a file was changed last, by the seconds since 1970 that its system keeps.

    Some keep more than a calendar has, and any program may set them: then its first or last moment.
    """
    first, last = -62_135_596_800, 253_402_300_799  # of the years 1 and 9999
    return datetime.fromtimestamp(min(max(seconds, first), last), UTC)


def text_of_path(path: str | Path) -> str:
    """A path as text that any file can hold; file names need not be valid UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def joined(parts: Sequence[str], last: str = " and ") -> str:
    """ "a, b and c"; "" of nothing."""
    return last.join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


# ---- Numbers as people type them, maybe with a decimal comma.


_DECIMAL_COMMA = re.compile(r"([+-]?[0-9]*),([0-9]+)((?:[eE][+-]?[0-9]+)?)")


def with_decimal_point(typed: str) -> str:
    """A typed number with a decimal comma as one with a point: "1,5" is "1.5".

    Other texts stay as they are. Raises `BudgetError` for one such as "1,500", which may be either.
    """
    match = _DECIMAL_COMMA.fullmatch(typed.strip())
    if match is None:
        return typed
    whole, decimals, exponent = match.groups()
    if len(decimals) == 3 and re.fullmatch("[+-]?[1-9][0-9]{0,2}", whole):
        raise BudgetError(
            f"The number {typed.strip()} may mean {whole}{decimals} or {whole}.{decimals}; write "
            "it without a comma."
        )
    return f"{whole}.{decimals}{exponent}"


def number_of(
    typed: str,
    name: str = "This field",
    *,
    least: float | None = None,
    most: float | None = None,
) -> float | None:
    """The number that was typed; None for a blank text, `RpexploreError` for what is no number."""
    if not typed.strip():
        return None
    try:
        number = float(exact_fraction(with_decimal_point(typed), name))
    except OverflowError:
        raise RpexploreError(f"{name} must be at most 1e308, got {shown(typed)}.") from None
    if least is not None and number < least:
        raise RpexploreError(f"{name} must be at least {number_text(least)}, got {shown(typed)}.")
    if most is not None and number > most:
        raise RpexploreError(f"{name} must be at most {number_text(most)}, got {shown(typed)}.")
    return number


# Groups of three digits, with the same sign between all; of points there are two at least.
_THOUSANDS = re.compile(
    r"[1-9][0-9]{0,2}(?:([,'\u2019 \u00a0\u2009\u202f])[0-9]{3}(?:\1[0-9]{3})*|(?:\.[0-9]{3}){2,})"
)


def count_of(
    typed: str,
    name: str = "This field",
    *,
    least: float | None = 0.0,
    most: float | None = None,
) -> float | None:
    """`number_of` a count, which may have thousands separators: "48,842" and "48 842" are 48842.

    Raises `RpexploreError` for one such as "48.842", which may be 48,842 or about 49.
    """
    text = typed.strip()
    if re.fullmatch(r"[1-9][0-9]{0,2}\.[0-9]{3}", text):
        whole, decimals = text.split(".")
        raise RpexploreError(
            f"{name} {text} may mean {whole}{decimals} or about {float(text):.0f}; write it "
            f"without a point: {whole}{decimals}."
        )
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"[^0-9]", "", text)
    return number_of(text, name, least=least, most=most)


_MARKED = re.compile(r"([+-]?[1-9][0-9]{0,2})[.,]([0-9]{3})")


def refuse_unclear(numbers: Iterable[str]) -> None:
    """Raise `BudgetError` where all marks in numbers of a file may be decimal ones or of thousands.

    "1.250" beside "2.5" or "12500" is clear, and alone it is not.
    """
    marked: list[re.Match[str]] = []
    for number in map(str.strip, numbers):
        if match := _MARKED.fullmatch(number):
            marked.append(match)
        elif not re.fullmatch("[+-]?[0-9]{0,3}", number):
            return
    if marked:
        whole, decimals = marked[0].groups()
        raise BudgetError(
            f"The number {marked[0][0]} may mean {whole}{decimals} or {whole}.{decimals}0; write "
            "it in one of these ways."
        )


def needed_number_of(typed: str, name: str, **limits: float) -> float:
    """`number_of` a text that may not be blank."""
    number = number_of(typed, name, **limits)
    if number is None:
        raise RpexploreError(f"{name} must be a number; type one, such as 2 or 0.5.")
    return number


def number_text(number: float | None) -> str:
    """The text that `number_of` reads as this number."""
    return "" if number is None else repr(float(number)).removesuffix(".0")


# ---- Names and other short texts: which can be kept, and in which form.


# Signs of no width, which programs put around and into texts unasked: controls (but for those that
# are blanks), hyphens and joiners, directions, variants of a letter, fillers, tags. These are the
# code points that Unicode calls ignorable by default, and its blank Braille cell.
UNSEEN = (
    "\x01-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Signs that cannot be seen, as the inside of a set of a regular expression."""
_UNSEEN = re.compile(f"[{UNSEEN}]")
# Embeddings, overrides and isolates: they turn round what stands beside them. Marks of one
# direction (U+200E, U+200F), which Hebrew and Arabic need, do not.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def as_seen(text: str) -> str:
    """A text without signs of no width."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", text)


def check_direction(text: str, noun: str, error: type[RpexploreError]) -> None:
    """Raise `error` for a text that turns round how it, or what stands beside it, is read.

    noun: what it is, with its article
    """
    if not text.isascii() and (sign := _TURNING.search(text)):
        raise error(
            f"{noun} {text!a} holds the sign U+{ord(sign[0]):04X}, which changes the "
            "direction in which it and what stands beside it are read; leave the sign out."
        )


def check_names(
    texts: Iterable[Any],
    noun: str,
    repeated: str,
    error: type[RpexploreError],
    *,
    are_shown: bool = False,
) -> tuple[str, ...]:
    """The texts in the form NFC; raises `error` unless they are distinct, and none is empty.

    Args:
        texts: Whatever was given for them.
        noun: What each of them is.
        repeated: What is wrong with one that is there twice, and what to do about it.
        error: What is raised.
        are_shown: Whether they tell things apart for readers: then they have to look distinct, too,
            and none may turn the direction of reading.
    """
    texts = list(texts)
    # At once where there is nothing to say: they may be a million.
    if set(map(type, texts)) <= {str}:
        together = "".join(texts)
        is_plain = together.isascii() and together.isprintable() and all(map(str.strip, texts))
        if is_plain and len(set(texts)) == len(texts):
            return tuple(texts)
    seen: dict[str, str] = {}  # as given, by the form
    looks: dict[str, str] = {}  # the form, by how it looks
    for number, text in enumerate(texts, start=1):
        if not is_text(text) or not text.strip():
            raise error(
                f"The {noun} number {number:,} must be a text that files can hold and that is not "
                f"empty, got {shown_value(text)}; name it, or leave it out."
            )
        form = normalize("NFC", text)
        if form in seen:
            forms = "" if seen[form] == text else " (in two Unicode forms)"
            raise error(f"The {noun} {text!r}{forms} {repeated}.")
        seen[form] = text
        if not are_shown:
            continue
        check_direction(form, f"The {noun}", error)
        if (other := looks.setdefault(as_seen(form), form)) != form:
            raise error(
                f"The {noun} {form!a} looks like {other!a}, from which it differs by "
                "signs that cannot be seen; leave these signs out, or give it another name."
            )
    return tuple(seen)


def check_text(text: Any, noun: str, most: int, error: type[RpexploreError]) -> None:
    """Raise `error` unless it is a text that files can hold, of at most so many characters.

    noun: what it is, with its article
    """
    if not is_text(text):
        raise error(
            f"{noun} must be a text that UTF-8 can write, got {shown(ascii(text))}; type it anew."
        )
    if len(text) > most:
        raise error(f"{noun} can have {most:,} characters, got {len(text):,}; shorten it.")


def is_text(value: object) -> bool:
    """Whether it is a text that files and databases can hold: no lone surrogates, and no NUL."""
    if not isinstance(value, str) or "\x00" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# ---- CSV texts: read row by row, and written, formulas escaped where that is wanted.
#
# Lines that are written end as RFC 4180 says: a text that holds either line end is then quoted.


FORMULAS_ESCAPED = (
    "In CSV files an apostrophe stands before texts that a spreadsheet would take for formulas."
)
FORMULA_SIGNS = "=+-@\t\r＝＋－＠"
"""What a text begins with that spreadsheets take for a formula, some of them also in full width."""

_OF_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|&~!])")


def markdown_text(text: str) -> str:
    """A text as it is, in one line of Markdown or HTML: its signs mean nothing there.

    >>> print(markdown_text("<b>a_b</b>"))
    \\<b\\>a\\_b\\</b\\>
    """
    return _OF_MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def csv_rows(
    text: str, source: str, error: type[RpexploreError], delimiter: str | None = ","
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV text, each with the number of its last line; `error` for what is no CSV.

    Empty lines behind the first one are left out. delimiter: None is the one that a first line
    "sep=;" of Excel names, or else the one of comma, semicolon, tab and bar that makes most columns
    of the first line that any of them splits, the comma before others.
    """
    n_above = 0
    separator = delimiter or ","
    if delimiter is None:
        stated = re.match(r'"?sep=([^\r\n])"?(\r\n|[\r\n])', text, re.IGNORECASE)
        if stated is not None:
            text, n_above = text[stated.end() :], 1
        separator = stated[1] if stated else _separator_of(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            if row or reader.line_num == 1:
                yield reader.line_num + n_above, row
    except csv.Error as problem:
        raise error(
            f"{source} is no usable CSV (line {reader.line_num + n_above}: {problem}); check that "
            "every quote is closed."
        ) from None


def refuse_twice(
    columns: Sequence[str], names: Iterable[str], source: str, error: type[RpexploreError]
) -> None:
    """Raise `error` if one of these names is that of two columns."""
    for name in names:
        if columns.count(name) > 1:
            raise error(f"{source} has the column {name} twice; keep one of them.")


def shown_header(header: Sequence[str], known: Iterable[str]) -> str:
    """The names of columns for an error, if one of them is known (in any letters).

    Without one the first line may be a record, and is not shown.
    """
    if not any(cell.strip() for cell in header):
        return "no header"
    if {name.lower() for name in known}.isdisjoint(cell.strip().lower() for cell in header):
        return f"a first line of {plural(len(header), 'cell')} with none of these names"
    return shown_few(header)


def _separator_of(text: str) -> str:
    """The one that splits the first line that any splits, of 20: titles stand above names."""
    separators = (",", ";", "\t", "|")

    def n_columns(separator: str) -> list[int]:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        sizes: list[int] = []
        with suppress(csv.Error):  # told where the rows are read
            sizes.extend(len(row) for row in islice(rows, 20))
        return sizes

    sizes = map(n_columns, separators)
    lines = zip_longest(*sizes, fillvalue=0)
    first = next((line for line in lines if max(line) > 1), (1,) * len(separators))
    return separators[first.index(max(first))]


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def csv_of_frame(frame: "pd.DataFrame", *, escape_formulas: bool = False) -> str:
    """The columns of a frame as CSV, without its index."""
    if escape_formulas:
        frame = frame.rename(columns=without_formula).map(without_formula)
    return frame.to_csv(index=False, lineterminator="\r\n")


def begins_formula(text: str) -> bool:
    """Whether a spreadsheet that opens the text in a CSV file would take it for a formula."""
    return text.startswith(tuple(FORMULA_SIGNS))


def without_formula(cell: Any) -> Any:
    """A text with an apostrophe before what would be a formula; any other cell as it is."""
    return f"'{cell}" if isinstance(cell, str) and begins_formula(cell) else cell


# ---- Plain values as YAML text: mappings, lists, texts, numbers.
#
# Texts stand as JSON has them, which YAML 1.2 reads as it is, or as a block of lines where they are
# long or have several lines: people go on with these files in an editor.


_LONG = 72  # signs


def yaml_text(content: Mapping[str, Any]) -> str:
    """The YAML text of a mapping whose keys are plain words.

    Values are mappings, lists, texts, numbers, or truth values.
    """
    return "".join(f"{line}\n" for line in _lines_of_mapping(content))


def _lines_of_mapping(content: Mapping[str, Any]) -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield f"{key}:"
            yield from (f"  {line}" if line else "" for line in _lines_of_mapping(value))
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            yield f"{key}:"
            yield from (f"  - {_scalar(item)}" for item in value)
        elif isinstance(value, str) and _is_for_block(value):
            yield f"{key}: |-"
            yield from (f"  {line}" if line else "" for line in value.split("\n"))
        else:
            yield f"{key}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, float) and "." not in text:
        text = text.replace("e", ".0e")  # "1e-06" is a text to readers of YAML 1.1
    # YAML forbids some of the signs that JSON may hold.
    return "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in text)


def _is_for_block(text: str) -> bool:
    """Whether a block of lines holds exactly this text, and is the better one to read."""
    lines = text.split("\n")
    return (
        (len(lines) > 1 or len(text) > _LONG)
        and all(line.isprintable() for line in lines)
        and lines[0] != ""
        and not lines[0].startswith(" ")
        and lines[-1].strip() != ""
    )
