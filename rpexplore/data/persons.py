"""Persons: which records are kept where one person may have only so many (`PersonRule`)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.common.processes import Progress
from rpexplore.common.text import UNSEEN
from rpexplore.data.arrow_values import as_numbers, as_text, distinct_values, of_known_type
from rpexplore.data.coding import Declared
from rpexplore.data.source import BEYOND, COUNTING, OF_NOBODY, UNCLEAR, PersonRule
from rpexplore.domain.dates import BLANKS

# One person's id may be written in several ways. Its canonical form is the same for every source,
# type and engine: a text in NFC without blanks around it and signs that nobody sees; a whole
# number, also one of a decimal or floating type, by its digits (7.0 is 7, as among categories); a
# date as 2026-11-28.
#
# Other ids that are equal as numbers, such as 7 and 07 or 1001 and 1,001, may be one person or two.
# Either guess can break the limit: two people taken for one make room for each other. So records
# are refused where both occur, as are ids that differ by capital and small letters alone, UUIDs
# with and without dashes, and so are ids that programs write in many ways (times of day) or have
# rounded, and those that are two numbers: 1.000 may be one or a thousand, 1.230 is 1.23 or 1230.
#
# Memory, for each record: 21 bytes while all persons are known by whole numbers, 29 otherwise; 8
# more where some ids have zeros in front or capital letters, and others not; with an order 8 more,
# and another 16 (and its texts) where the order is not by numbers.


# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false


# Patterns mean the same to pyarrow, DuckDB, PostgreSQL and Spark.
_WITHIN = "[!$-9;<>-SU-z|~]"  # signs within an id, and those of them that can begin or end it
_END = r"[$-&+0-9@-SU-Z\^a-z]"
# Quotation marks, brackets and number signs that are put around ids, and what separates ids.
_AROUND = (
    "\"'`=#*\u00b4\u2018-\u201f\u2032\u2033\u2039\u203a\u00ab\u00bb\u2116\uff02\uff03\uff07"
    "(){}<>\\[\\]\u3008-\u3011\uff08\uff09\uff3b\uff3d"
)
# What is put behind an id, or between ids, also in other scripts.
_BEHIND = ".,;:!?/|~_\\\\\u00b7\u0964\u060c\u061b\u061f\u06d4\u2022\u3001\u3002-"
# Signs that stand for others, of which NFC makes no others: letters and signs of full and half
# width, letters and digits of mathematics, raised, lowered, enclosed and squared ones, fractions,
# Roman numerals, joined letters. Digits, dashes, points and signs around ids are compared.
_COMPATIBLE = (
    "\uff01\uff04-\uff06\uff0a\uff0b\uff0f\uff1a-\uff3a\uff3c\uff3e-\uffee"
    "\u00aa\u00b2\u00b3\u00b9\u00ba\u00bc-\u00be\u0132\u0133\u013f\u0140\u0149\u017f\u01c4-\u01cc"
    "\u01f1-\u01f3\u02b0-\u02b8\u02e0-\u02e4\u10fc\u1d2c-\u1d6a\u1d78\u1d9b-\u1dbf\u1e9a\u2026"
    "\u2070-\u209c\u20a8\u20dd-\u20e4\u2100-\u2115\u2117-\u214f\u2150-\u2189\u2460-\u24ff"
    "\u2776-\u2793\u2c7c\u2c7d\u2d6f\u3192-\u319f\u3244-\u327e\u3280-\u33ff\ua69c\ua69d\ua770"
    "\ua7f2-\ua7f4\ua7f8\ua7f9\uab5c-\uab5f\uab69\ufb00-\ufb06\ufb20-\ufb29"
    "\U00010781-\U000107ba\U0001d400-\U0001d7cb\U0001ee00-\U0001eebb\U0001f100-\U0001f190"
    "\U0001f200-\U0001f251"
)
PLAIN_ID = (
    "^(?:0|[1-9][0-9]*|[0-9]+(?:[-/_][0-9]+)+"
    "|[A-Za-z](?:[A-Za-z_-]| [A-Za-z_-])* ?[0-9](?:[0-9A-Za-z_-]*[0-9A-Za-z])?"
    # A digit and a letter that no number has, without blanks, colons, the T of times, the # of what
    # spreadsheets write for nobody, and the signs that programs put around ids.
    f"|(?:{_END}{_WITHIN}*)?(?:[0-9]{_WITHIN}*[A-CF-SU-Za-cf-z]"
    f"|[A-CF-SU-Za-cf-z]{_WITHIN}*[0-9])(?:{_WITHIN}*{_END})?)$"
)
"""Texts that are canonical, and no others' number: most are, and this is told fast."""
DIGITS_ID = "^[0-9]+$"
"""Canonical ids that are numbers without the zeros in front, if any: this is told fastest."""
UNDASHED_UUID, UNDASHED_LENGTH = "^[0-9A-Fa-f]{32}$", 32
"""Canonical ids that are equal with dashes, if not digits alone: UUIDs, also of other digests."""
AROUND_UUID = (
    f"^[{_AROUND}]*(?:[Uu][Rr][Nn]:[Uu][Uu][Ii][Dd]:)?"
    "[0-9A-Fa-f]{8}(?:-(?:[0-9A-Fa-f]{4}-){3}|[0-9A-Fa-f]{12})[0-9A-Fa-f]{12}"
    f"[{_AROUND},;:]*$"
)
"""The same with what some programs put around them, which are `NOT_OF_UUID` in small letters."""
NOT_OF_UUID = f"[{_AROUND},;]|:$|urn:uuid:"
DASHES_OF_UUID = ("^(.{8})(.{4})(.{4})(.{4})(.{12})$", r"\1-\2-\3-\4-\5")
"""Puts dashes into a UUID that has none."""
WHOLE_DECIMAL = (r"^(-?[0-9]+)\.0+$", r"\1")
"""The text of a whole number of a decimal type, with all decimals of the type, and its digits."""
LEFT_OUT = (f"[{UNSEEN}]", "")
"""A pattern and what takes its place before a text is put in NFC: it may part a letter and its
accent."""
CANONICAL = (
    (f"^[{BLANKS}]+|[{BLANKS}]+$", ""),
    # A whole number as some programs write it: 3.0. But 3.000 may be three or three thousand.
    (r"^(-?[0-9]+)\.(?:0|00|0000+)$", r"\1"),
    (r"^(-?(?:0[0-9]*|[0-9]{4,}))\.000$", r"\1"),
)
"""The same, one after the other, in a text in NFC."""
# The digits of all scripts, by what they are worth.
_DIGITS = [""] * 10
for _sign in map(chr, range(0x80, 0x20000)):
    if _sign.isdecimal():
        _DIGITS[int(_sign)] += _sign
# All that Unicode calls a dash, and signs that look like one.
_DASHES = (
    "\u02d7\u058a\u05be\u1400\u1806\u2010-\u2015\u2043\u207b\u208b\u2212\u2796\u2e17\u2e1a\u2e3a\u2e3b"
    "\u2e40\u2e5d\u301c\u3030\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d"
)
_NO_COMMA = " '\u2019"  # groups of digits, but for a comma
_BETWEEN = f",{_NO_COMMA}"  # groups of digits
_GROUPS = f"[{_BETWEEN}]([0-9]{{3}}(?:[{_BETWEEN}][0-9]{{3}})*(?:[.,][0-9]+)?)"
_PAIRS = f"[{_BETWEEN}]([0-9]{{2}}(?:[{_BETWEEN}][0-9]{{2}})*[{_BETWEEN}][0-9]{{3}})"
_BARE = ((f"^[{_AROUND}{BLANKS}/|~_\\\\]+|[{_AROUND}{BLANKS}{_DASHES}{_BEHIND}]+$", ""),)
_IN_ONE_FORM = (
    *((f"[{signs}]", str(digit)) for digit, signs in enumerate(_DIGITS)),
    (f"[{_DASHES}]", "-"),
    ("[\u066c\uff0c]", ","),
    ("[\u066b\uff0e]", "."),
)
_ONE_BLANK = ((f"[{BLANKS}]+", " "),)
_SEPARATED = (
    # 1.234,00 and 1 234,000: behind groups by another sign, or by none, a comma is a decimal one.
    *((r"^([+-]?[0-9]{1,3}(?:[.][0-9]{3})*)[.]((?:[0-9]{3})+,[0-9]+)$", r"\1\2"),) * 6,
    (rf"^([+-]?[0-9]{{1,3}}(?:[{_NO_COMMA}][0-9]{{3}})+),([0-9]+)$", r"\1.\2"),
    (r"^([+-]?(?:0[0-9]*|[0-9]{4,})),([0-9]+)$", r"\1.\2"),
    # 1.000.000, from behind, as 1,000,000; a single point may be that of decimals.
    *((r"^([+-]?[0-9]{1,3}(?:[.][0-9]{3})+)[.]([0-9]{3}(?:,[0-9]{3})*)$", r"\1,\2"),) * 6,
    (r"^([+-]?[0-9]{1,3})[.]([0-9]{3}(?:,[0-9]{3})+)$", r"\1,\2"),
    # 12,34,567, as in India.
    *((rf"^([+-]?[0-9]{{1,2}}(?:[0-9]{{2}})*){_PAIRS}$", r"\1\2"),) * 9,
    # 1,000 and 1 000 000, group by group; then 7,5.
    *((rf"^([+-]?[0-9]{{1,3}}(?:[0-9]{{3}})*){_GROUPS}$", r"\1\2"),) * 7,
    (r"^([+-]?[0-9]+),([0-9]+)$", r"\1.\2"),
)
# 7e0 and 1E5, as SAS writes whole numbers; with larger exponents nobody writes them out.
_WITH_EXPONENT = tuple(
    (rf"^([+-]?[0-9]+)[eEdD]0*{zeros}$", rf"\1{'0' * zeros}") for zeros in range(22)
)
_SHORTEST = (
    (r"^([+-]?)[.]([0-9]+)$", r"\10.\2"),
    (r"^[+]?(-?)0*([0-9]+(?:[.][0-9]*)?)$", r"\1\2"),
    (r"^(-?[0-9]+[.][0-9]*[1-9])0+$", r"\1"),
    (r"^(-?[0-9]+)[.]0*$", r"\1"),
    (r"^(-?[1-9][0-9]{0,2})[.]([0-9]{3})$", r"\1\2"),
    (r"^-0$", "0"),
)
_MAY_BE_NUMBER = f"^[-+0-9.{_BETWEEN}]+$"
AS_NUMBER = (
    ("", _BARE),
    (f"[\u066b\u066c\uff0c\uff0e{_DASHES}{''.join(_DIGITS)}]", _IN_ONE_FORM),
    ("", _ONE_BLANK),
    (_MAY_BE_NUMBER, _SEPARATED),
    ("^[+-]?[0-9]+[eEdD][0-9]+$", _WITH_EXPONENT),
    (_MAY_BE_NUMBER, _SHORTEST),
)
"""The same, for a canonical id: what all that are equal as numbers become, in the digits of any
script and with any separators, and all that differ by their dashes and blanks alone. Some at a
time, behind a pattern that is in a text which they change ("": in any)."""
# Signs that say nothing by themselves, as a dash that stands for no answer, and beside a word.
_SIGNS = (
    f"[$%&+@^{_AROUND}{BLANKS}{_DASHES}\u00a1-\u00a9\u00ab-\u00b1\u00b6-\u00b8\u00bf\u00d7\u00f7"
    f"\u2010-\u205e\u20a0-\u20cf\u2190-\u23ff\u2500-\u2bff\ufffd{_BEHIND}]*"
)
NOBODY_ID = (
    f"(?i)^{_SIGNS}"
    r"(?:#?n/?a(?: n/?a)?|-?nan|-?1[.]#(?:ind|qnan)|nat|nil|none|null"
    r"|#[^0-9]+[!?]|#[^0-9]+/0!|\\n|[.][a-z_]|missing|undefined|n[.] ?a[.]?"
    r"|#(?:nv|n/?d|i/t|yok|brak|getting_data|Н/Д)|err:[0-9]{3}|-?nan[(]ind[)]"
    r"|[+-]?inf(?:inity)?|-?1[.]#(?:inf|ind|qnan|snan)0*|[(](?:blank|empty)[)]"
    r"|na_(?:character|integer|real)_|__hive_default_partition__)?"
    f"{_SIGNS}$"
)
"""Canonical ids by which programs write what is missing: also errors of spreadsheets, as they are
called in other languages, the letters of Stata and SAS, and signs without a letter or a digit."""
UNCLEAR_ID = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]"
    "|^[+-]?(?:[0-9]+[.,][0-9]*[dDeE][+-]?|[.,][0-9]+[dDeE][+-]?|[0-9]+(?:[eE][+-]|[dD][+]))[0-9]+$"
    # Of 1.230 it is open whether it is 1.23 or 1230; 1.234 can only be met as 1234.
    "|^[+-]?[1-9][0-9]{0,2}[.,][0-9]{2}0$"
    f"|[{_COMPATIBLE}]"
)
"""Canonical ids that are times of day, numbers as programs write them when they round, two numbers
by what the point is, or in letters that stand for others."""
EXACT_BELOW = {16: 2.0**11, 32: 2.0**24, 64: 2.0**53}
"""By the bits of a float: whole ones below stand for no neighbour that was rounded."""

_CAPITALS = 1  # the `writing` of ids in capitals, without a small letter
_PIECE = 1 << 20  # records that are compared at a time
_LARGEST = 10**18  # of the whole numbers that are keys themselves; texts of them are read exactly


@cache
def letters(last: str = "\U0001ffff") -> tuple[str, str]:
    """Letters that are written in capitals or in another form, and the small letter of each.

    last: of those that are looked at. By Unicode, whatever the locale, and letter by letter: ß,
    whose capitals are two, stays. I, İ, i and ı are one, as programs take any two for one.
    """
    small = {"İ": "i"}
    for letter in map(chr, range(0x41, ord(last) + 1)):
        capital = letter.upper() if len(letter.upper()) == 1 else letter
        if len(capital.lower()) == 1 and capital.lower() != letter:
            small[letter] = capital.lower()
    return "".join(small), "".join(small.values())


DOTTED_I = ("i\u0307", "i")
"""What some programs make of İ in small letters, and what takes its place behind `letters`."""


def kept_records(
    batches: Iterable[tuple[pa.RecordBatch, float]],
    rule: PersonRule,
    on_progress: Progress,
    declared: Declared | None = None,
) -> np.ndarray:
    """Which records are counted, in the order of the batches: bool[n_records].

    batches: the columns that the rule names, and the share of all records read by then. declared:
    which ids the file itself declares to be missing, or may have rounded.

    Of the order, numbers come first, by size (as 64-bit floating point), then texts by letter, then
    what is missing; ties stay in the order of the records. So which records of a person are kept
    depends on these alone.

    Raises `DataError` for a record of nobody, for ids that leave it open who is who, and, where the
    rule refuses them, for more records of one person than it allows.
    """
    persons = _Persons.of(batches, rule, on_progress, declared)
    kept = np.ones(len(persons.records), dtype=bool)
    for later, _ in persons.neighbours(rule.most):
        if rule.excess == "refuse" and len(later):
            raise rule.error(BEYOND)
        kept[later] = False
    return kept


def differing_codes(
    batches: Iterable[tuple[pa.RecordBatch, float]],
    rule: PersonRule,
    codes_of: Callable[[pa.RecordBatch], Sequence[np.ndarray]],
    on_progress: Progress,
    declared: Declared | None = None,
) -> tuple[set[int], int]:
    """Which codes differ between records of one person, and how many persons there are.

    codes_of: some codes of each record of a batch. The others are as of `kept_records`, which
    raises the same of ids.
    """
    parts: list[Sequence[np.ndarray]] = []

    def read() -> Iterator[tuple[pa.RecordBatch, float]]:
        for batch, share in batches:
            parts.append(codes_of(batch))
            yield batch, share

    persons = _Persons.of(read(), replace(rule, order=None), on_progress, declared)
    codes = [np.concatenate(column) for column in zip(*parts, strict=True)]
    n_persons, differing = len(persons.records), set[int]()
    for later, earlier in persons.neighbours(1):
        n_persons -= len(later)
        differing |= {
            place for place, own in enumerate(codes) if np.any(own[later] != own[earlier])
        }
    return differing, n_persons


@dataclass(frozen=True, eq=False, repr=False)
class _Persons:
    """Records by the persons whose they are.

    keys     int64[n_records] each, equal together only for records of one person
    records  int64[n_records]: those of each person after each other, by the order of the rule
    """

    keys: list[np.ndarray]
    records: np.ndarray

    @classmethod
    def of(
        cls,
        batches: Iterable[tuple[pa.RecordBatch, float]],
        rule: PersonRule,
        on_progress: Progress,
        declared: Declared | None,
    ) -> "_Persons":
        """Raises `DataError` for a record of nobody, and ids that leave it open who is who."""
        lows: list[np.ndarray] = []
        highs: list[np.ndarray | int] = []
        writings: list[np.ndarray | int] = []
        order = _Order()
        for batch, share in batches:
            column = batch.column(rule.column)
            if declared is not None:
                values = of_known_type(column)
                if declared.where(values).any():
                    raise rule.error(OF_NOBODY)
                if declared.are_rounded(values).any():
                    raise rule.error(UNCLEAR)
            part = person_keys(column)
            for state in (OF_NOBODY, UNCLEAR):
                if np.any(part.state == state):
                    raise rule.error(state)
            lows.append(part.low)
            highs.append(_short(part.high))
            writings.append(_short(part.writing))
            if rule.order is not None:
                order.add(batch.column(rule.order))
            on_progress(COUNTING, share)
        sizes = list(map(len, lows))
        keys = [_concatenate(lows)]
        if (high := _filled(highs, sizes)) is not None:
            keys.insert(0, high)
        writing = _filled(writings, sizes)
        for parts in (lows, highs, writings):
            parts.clear()
        # The last key first, ties as they come.
        persons = cls(keys, np.lexsort([*order.keys(), *keys]))
        if writing is not None:
            for later, earlier in persons.neighbours(1):
                if np.any(writing[later] != writing[earlier]):
                    raise rule.error(UNCLEAR)
        return persons

    def neighbours(self, distance: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Records of one person that lie so far apart in their order: later and earlier ones."""
        for start in range(distance, len(self.records), _PIECE):
            later = self.records[start : start + _PIECE]
            earlier = self.records[start - distance :][: len(later)]
            are_ones = np.all([key[later] == key[earlier] for key in self.keys], axis=0)
            yield later[are_ones], earlier[are_ones]


@dataclass(frozen=True, eq=False, repr=False)
class PersonKeys:
    """Whose each of some records is.

    low, high  int64[n], equal together only for ids that are equal, as texts or as numbers; `high`
               is None where it is 0 for all, as it is for whole numbers
    writing    int64[n], by which equal ids that are written in different ways differ; None for 0s
    state      int8[n]: 0, `OF_NOBODY` or `UNCLEAR`; the others mean nothing where it is not 0
    """

    low: np.ndarray
    high: np.ndarray | None
    writing: np.ndarray | None
    state: np.ndarray


def person_keys(column: pa.Array) -> PersonKeys:
    """Whose each record is, by a column of any plain type."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    distinct, indices = distinct_values(column)
    keys = _distinct_keys(distinct, kind)

    def of_records(values: np.ndarray | None, of_missing: int) -> np.ndarray | None:
        # What is missing may stand behind the distinct values.
        return None if values is None else np.append(values, values.dtype.type(of_missing))[indices]

    low, state = of_records(keys.low, 0), of_records(keys.state, OF_NOBODY)
    assert low is not None
    assert state is not None
    return PersonKeys(low, of_records(keys.high, 0), of_records(keys.writing, 0), state)


def _distinct_keys(values: pa.Array, kind: pa.DataType) -> PersonKeys:
    """The same of some values, of a column of this type."""
    low = np.zeros(len(values), dtype=np.int64)
    is_missing = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    state = np.where(is_missing, OF_NOBODY, 0).astype(np.int8)
    is_time = pa.types.is_temporal(values.type) and not pa.types.is_date(values.type)
    if is_time or pa.types.is_boolean(values.type):
        return PersonKeys(low, None, None, np.where(is_missing, state, np.int8(UNCLEAR)))
    values = of_known_type(values)
    if pa.types.is_floating(values.type):
        numbers = as_numbers(values)
        is_exact = (numbers == np.floor(numbers)) & (np.abs(numbers) < EXACT_BELOW[kind.bit_width])
        low[is_exact] = numbers[is_exact].astype(np.int64)
        state[~is_exact & ~is_missing] = UNCLEAR
        return PersonKeys(low, None, None, state)
    if pa.types.is_integer(values.type) and not pa.types.is_uint64(values.type):
        numbers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        if not np.any(numbers <= -_LARGEST) and not np.any(numbers >= _LARGEST):
            return PersonKeys(numbers, None, None, state)
    texts = pc.fill_null(as_text(values), "")
    if pa.types.is_decimal(kind):
        texts = _replaced(texts, [WHOLE_DECIMAL])
    is_odd = pc.invert(pc.match_substring_regex(texts, PLAIN_ID))
    if pc.any(pc.equal(pc.binary_length(texts), UNDASHED_LENGTH)).as_py():
        is_undashed = pc.match_substring_regex(texts, UNDASHED_UUID)
        has_letters = pc.match_substring_regex(texts, "[A-Fa-f]")
        is_odd = pc.or_(is_odd, pc.and_(is_undashed, has_letters))
    odd, places = texts.filter(is_odd), np.flatnonzero(is_odd.to_numpy(zero_copy_only=False))
    writing = None
    if len(odd):
        odd = pc.replace_substring(odd, "\0", "")  # which no pattern of an engine can hold
        in_nfc = pc.utf8_normalize(_replaced(odd, [LEFT_OUT]), form="NFC")
        canonical = _replaced(in_nfc, CANONICAL)
        for odd_state, pattern in ((UNCLEAR, UNCLEAR_ID), (OF_NOBODY, NOBODY_ID)):
            matches = pc.match_substring_regex(canonical, pattern).to_numpy(zero_copy_only=False)
            state[places[matches]] = odd_state
        equal = _replaced(canonical, chain.from_iterable(steps for _, steps in AS_NUMBER))
        is_uuid = pc.and_(
            pc.match_substring_regex(canonical, AROUND_UUID),
            pc.invert(pc.match_substring_regex(canonical, DIGITS_ID)),
        )
        uuids = _replaced(pc.ascii_lower(canonical), [(NOT_OF_UUID, ""), DASHES_OF_UUID])
        equal = pc.if_else(is_uuid, uuids, equal)
        differs = pc.not_equal(_in_small_letters(canonical), _in_small_letters(equal))
        texts = pc.replace_with_mask(texts, is_odd, pc.if_else(differs, equal, canonical))
        if pc.any(differs).as_py():
            writing = np.zeros(len(texts), dtype=np.int64)
            # The half that is never 0, as it is where an id is written as the number is.
            written = _digests(canonical.filter(differs))[:, 1]
            writing[places[differs.to_numpy(zero_copy_only=False)]] = written
    small = _in_small_letters(texts)
    has_capitals = pc.not_equal(small, texts)
    if pc.any(has_capitals).as_py():
        writing = np.zeros(len(texts), dtype=np.int64) if writing is None else writing
        is_new = has_capitals.to_numpy(zero_copy_only=False) & (writing == 0)
        writing[is_new] = _capitals(texts.filter(pa.array(is_new)), small.filter(pa.array(is_new)))
        texts = small
    whole = pc.match_substring_regex(texts, r"^(?:0|-?[1-9][0-9]{0,17})$")
    numbers = pc.if_else(whole, texts, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    others = texts.filter(pc.invert(whole))
    if not len(others):
        return PersonKeys(numbers, None, writing, state)
    low, high = numbers.copy(), np.zeros(len(numbers), dtype=np.int64)
    is_other = ~whole.to_numpy(zero_copy_only=False)
    low[is_other], high[is_other] = _digests(others).T
    return PersonKeys(low, high, writing, state)


def _capitals(texts: pa.Array, small: pa.Array) -> np.ndarray:
    """By which letters of each text are not the small ones, int64[n]; never 0."""
    writing = np.full(len(texts), _CAPITALS, dtype=np.int64)
    # Most ids have no small letter beside their capitals, which says enough.
    is_ascii = pc.string_is_ascii(texts)
    is_mixed = pc.or_(pc.not_equal(pc.ascii_upper(texts), texts), pc.invert(is_ascii))
    if not pc.any(is_mixed).as_py():
        return writing
    texts, small = texts.filter(is_mixed), small.filter(is_mixed)
    if pc.all(is_ascii).as_py():
        # The sum of a random number for each place with a capital: faster than a digest.
        ends = np.frombuffer(texts.buffers()[1], np.int32)[: len(texts) + 1]
        given, put = (np.frombuffer(one.buffers()[2], np.uint8, ends[-1]) for one in (texts, small))
        capitals = np.flatnonzero(given != put)
        firsts = np.searchsorted(capitals, ends[:-1])
        begins = np.repeat(ends[:-1], np.diff(firsts, append=len(capitals)))
        # The same numbers in every process.
        numbers = _digests(pa.array([str(place) for place in range(np.max(np.diff(ends)))]))[:, 0]
        marks = np.add.reduceat(numbers[capitals - begins], firsts)
    else:  # letters may be of other bytes
        marks = _digests(texts)[:, 1]
    writing[is_mixed.to_numpy(zero_copy_only=False)] = marks | (_CAPITALS << 1)
    return writing


def _in_small_letters(texts: pa.Array) -> pa.Array:
    """With each of the `letters` as its small one, in NFC."""
    small = pc.ascii_lower(texts)
    is_other = pc.invert(pc.string_is_ascii(small))
    if not pc.any(is_other).as_py():
        return small
    table = str.maketrans(*letters())
    others = [text.translate(table) for text in small.filter(is_other).to_pylist()]
    in_nfc = pc.utf8_normalize(pa.array(others, small.type), form="NFC")
    return pc.replace_with_mask(small, is_other, pc.replace_substring(in_nfc, *DOTTED_I))


def _replaced(texts: pa.Array, steps: Iterable[tuple[str, str]]) -> pa.Array:
    for pattern, replacement in steps:
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    return texts


def _digests(texts: pa.Array) -> np.ndarray:
    """127 bits of the BLAKE2 digest of each text, int64[n, 2]; the second number is never 0."""
    digests = [blake2b(text.encode(), digest_size=16).digest() for text in texts.to_pylist()]
    return np.frombuffer(b"".join(digests), dtype=np.int64).reshape(-1, 2) | [0, 1]


class _Order:
    """By what the records of a person are ordered: numbers, then texts, then what is missing."""

    def __init__(self) -> None:
        self._numbers: list[np.ndarray] = []
        # Of each record, among all texts; −1 for a number, −2 for what is missing.
        self._text_indices: list[np.ndarray] = []
        self._texts: list[pa.Array] = []
        self._n_texts = 0

    def add(self, column: pa.Array) -> None:
        distinct, indices = distinct_values(column)
        values = of_known_type(distinct)
        numbers = np.append(as_numbers(values), np.nan)
        text_indices = np.where(np.isnan(numbers), -2, -1)
        if pa.types.is_string(values.type):
            is_text = np.isnan(numbers[:-1]) & values.is_valid().to_numpy(zero_copy_only=False)
            texts = values.filter(pa.array(is_text))
            text_indices[:-1][is_text] = self._n_texts + np.arange(len(texts))
            self._texts.append(texts)
            self._n_texts += len(texts)
        self._numbers.append(numbers[indices])
        self._text_indices.append(text_indices[indices])

    def keys(self) -> list[np.ndarray]:
        """The sort keys, the lesser one first; none without a column."""
        if not self._numbers:
            return []
        numbers, indices = _concatenate(self._numbers), _concatenate(self._text_indices)
        self._numbers.clear()
        self._text_indices.clear()
        if not self._n_texts:
            return [numbers]  # not a number: comes last
        ranks = pc.rank(pa.concat_arrays(self._texts), tiebreaker="dense").to_numpy()
        # At the end, where −2 and −1 point to.
        ranks = np.append(ranks.astype(np.int64), [self._n_texts + 1, 0])
        return [ranks[indices], numbers]


def _concatenate(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _short(values: np.ndarray | None) -> np.ndarray | int:
    """A number in place of an array that holds no other, as of 0s, which None stands for."""
    if values is None or not len(values):
        return 0
    return int(values[0]) if np.all(values == values[0]) else values


def _filled(parts: Sequence[np.ndarray | int], sizes: list[int]) -> np.ndarray | None:
    """Arrays of these sizes put together, or None if all hold the same number: of `_short`."""
    numbers = [part for part in parts if isinstance(part, int)]
    if len(numbers) == len(parts) and len({*numbers}) <= 1:
        return None
    return _concatenate(
        [
            np.full(size, part, np.int64) if isinstance(part, int) else part
            for part, size in zip(parts, sizes, strict=True)
        ]
    )
