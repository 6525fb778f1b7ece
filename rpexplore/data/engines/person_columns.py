"""What a rule for persons needs of a record, as expressions of an engine.

An id means what it means in a file: the patterns are those of `data.persons`.
"""

from collections.abc import Callable, Sequence

import ibis
import ibis.expr.types as ir

from rpexplore.data.engines.coding import (
    Value,
    as_float,
    as_text,
    computed_once,
    hex_digits,
    sql_text,
)
from rpexplore.data.persons import (
    AROUND_UUID,
    AS_NUMBER,
    CANONICAL,
    DASHES_OF_UUID,
    DIGITS_ID,
    DOTTED_I,
    EXACT_BELOW,
    LEFT_OUT,
    NOBODY_ID,
    NOT_OF_UUID,
    PLAIN_ID,
    UNCLEAR_ID,
    UNDASHED_LENGTH,
    UNDASHED_UUID,
    WHOLE_DECIMAL,
    letters,
)
from rpexplore.data.source import PersonRule

PERSON, ORDER = "person", "order_of_person"
"""Columns of the coded records: whose one is, null if nobody's, and by what theirs are ordered."""
WRITING, IS_UNFIT = "writing_of_person", "is_unfit"
"""Columns of the coded records, unless ids are whole numbers: what equal ids differ in that are
written in different ways, and whether an id is one by which nobody can be known."""

# Columns of the table that columns of persons are made of: ids as texts, which form each has, its
# canonical form if it takes long, what all that are equal as numbers become, and the digits of
# what equal ids have in common.
_ID, _FORM, _CANONICAL, _NUMBER, _EQUAL = (
    f"rpexplore {name}" for name in ("id", "form", "canonical", "number", "equal")
)
_IN_ASCII, _IN_LATIN = "^[ -~]*$", "^[ -\u017f]*$"
_IN_CAPITALS = "^[ -`{-~]*$"
_CAPITALS = 1  # the writing of ids that are the small ones in capitals


@ibis.udf.scalar.builtin(name="normalize", signature=(("string",), "string"))
def _nfc_postgres(text): ...


@ibis.udf.scalar.builtin(name="nfc_normalize", signature=(("string",), "string"))
def _nfc(text): ...


@ibis.udf.scalar.builtin(name="chr", signature=(("int32",), "string"))
def _chr(code): ...


@ibis.udf.scalar.builtin(name="ltrim", signature=(("string", "string"), "string"))
def _without_first(text, signs): ...


@ibis.udf.scalar.builtin(name="hash", signature=(("string",), "uint64"))
def _hash_duckdb(text): ...


@ibis.udf.scalar.builtin(name="hashtextextended", signature=(("string", "int64"), "int64"))
def _hash_postgres(text, seed): ...


@ibis.udf.scalar.builtin(name="translate", signature=(("string",) * 3, "string"))
def _translate(text, signs, others): ...


def person_columns(
    table: ir.Table, rule: PersonRule, engine: str
) -> tuple[ir.Table, dict[str, Value]]:
    """What the rule needs of a record: PERSON, ORDER if records are kept by one, and the others.

    An id means what it means in a file: `persons` has the patterns. Returns the table with
    what the columns are made of as well.
    """
    column: Value = table[rule.column]
    kind = column.type()
    columns: dict[str, Value] = {PERSON: column}
    if rule.excess == "keep first" and rule.order is not None:
        columns[ORDER] = table[rule.order]
    if kind.is_integer():
        return table, columns
    if kind.is_boolean():
        nobody = ibis.null("int64")
        columns[PERSON] = ibis.ifelse(column.isnull(), nobody, ibis.literal(0, "int64"))
        return table, columns | {WRITING: _writing(0, engine), IS_UNFIT: ibis.literal(True)}
    if kind.is_floating():
        # Never rounded: engines refuse what fits no whole number.
        largest = EXACT_BELOW[32 if kind.is_float32() else 64]
        near: Value = ibis.ifelse(column.abs() < as_float(largest), column, as_float(0.5))
        is_exact: Value = near == near.floor()
        person = ibis.ifelse(is_exact, near, as_float(0)).cast("int64")
        number: Value = column.nullif(ibis.literal("nan").cast(kind))
        columns[PERSON] = ibis.ifelse(number.isnull(), ibis.null("int64"), person)
        return table, columns | {WRITING: _writing(0, engine), IS_UNFIT: ~is_exact}
    text: Value = as_text(column)
    if kind.is_decimal():
        text = text.re_replace(*WHOLE_DECIMAL)
    if engine == "postgresql":
        text = sql_text(text)
    # Form by form, as most ids need no more than one or two of the patterns; what is told fastest
    # comes first.
    is_undashed = (text.length() == UNDASHED_LENGTH) & text.re_search(UNDASHED_UUID)
    form = ibis.cases(
        (text.re_search(DIGITS_ID), 0), (is_undashed, 1), (text.re_search(PLAIN_ID), 2), else_=3
    )
    table = computed_once(table.mutate(**{_ID: text, _FORM: form}), engine)
    text, form = table[_ID], table[_FORM]
    # NUL, which no pattern of an engine can hold, is in no text of PostgreSQL.
    without_nul: Value = text.replace(_chr(0), "")  # pyright: ignore[reportArgumentType]
    to_nfc = _nfc_postgres if engine == "postgresql" else _nfc
    seen = _replaced(text if engine == "postgresql" else without_nul, [LEFT_OUT])
    in_nfc: Value = to_nfc(seen)
    other = ibis.ifelse(form == 3, _replaced(in_nfc, CANONICAL), ibis.null("string"))
    table = computed_once(table.mutate(**{_CANONICAL: other}), engine)
    is_odd = table[_FORM] == 3
    number = ibis.ifelse(is_odd, table[_CANONICAL], ibis.null("string"))
    # Most ids need none of most steps, and PostgreSQL keeps some thirty patterns: with more in a
    # row it would make each anew for every record.
    for needed, steps in AS_NUMBER:
        made = _replaced(number, steps)
        made = ibis.ifelse(number.re_search(needed), made, number) if needed else made
        table = computed_once(table.mutate(**{_NUMBER: made}), engine)
        number = table[_NUMBER]
    text, form = table[_ID], table[_FORM]
    canonical: Value = table[_CANONICAL]
    unpadded = _without_first(text, "0")
    unpadded = ibis.ifelse(unpadded == ibis.literal(""), ibis.literal("0"), unpadded)
    named = ibis.cases(
        (canonical.re_search(NOBODY_ID), ibis.null("string")),
        (
            canonical.re_search(AROUND_UUID) & ~canonical.re_search(DIGITS_ID),
            _in_ascii(canonical, engine).re_replace(NOT_OF_UUID, "").re_replace(*DASHES_OF_UUID),
        ),
        else_=_in_small_letters(table[_NUMBER], to_nfc, engine),
    )
    equal = ibis.cases(
        (form == 0, unpadded),
        (form == 1, _in_ascii(text, engine).re_replace(*DASHES_OF_UUID)),
        (form == 2, _in_ascii(text, engine)),
        else_=named,
    )
    table = computed_once(table.mutate(**{_EQUAL: hex_digits(equal, engine)}), engine)
    text, is_plain = table[_ID], table[_FORM] == 2
    canonical = ibis.coalesce(table[_CANONICAL], text)
    written = hex_digits(canonical, engine)
    are_capitals = hex_digits(_in_ascii(canonical, engine), engine) == table[_EQUAL]
    writing = ibis.cases(
        # Plain ids first, of which what follows says the same.
        (is_plain & ~text.re_search("[A-Z]"), _writing(0, engine)),
        (is_plain & ~text.re_search("[a-z]"), _writing(_CAPITALS, engine)),
        (is_plain, _hash(text, engine)),
        (written == table[_EQUAL], _writing(0, engine)),
        (canonical.re_search(_IN_CAPITALS) & are_capitals, _writing(_CAPITALS, engine)),
        else_=_hash(canonical, engine),
    )
    columns = {name: table[each.get_name()] for name, each in columns.items()}
    made_once: Value = table[_CANONICAL]
    return table, columns | {
        PERSON: table[_EQUAL],
        WRITING: writing,
        IS_UNFIT: ibis.ifelse(table[_FORM] == 3, made_once.re_search(UNCLEAR_ID), False),
    }


def _writing(number: int, engine: str) -> Value:
    return ibis.literal(number, "int64" if engine == "postgresql" else "uint64")


def _hash(text: Value, engine: str) -> Value:
    """64 bits; where two ids of one person had the same ones, he would be one, as he should."""
    return _hash_postgres(text, 0) if engine == "postgresql" else _hash_duckdb(text)


def _in_ascii(text: Value, engine: str) -> Value:
    """In small letters, as far as they are A to Z."""
    # To a server in Turkish the small letter of I is another one.
    return text.lower().replace("ı", "i") if engine == "postgresql" else text.lower()


def _in_small_letters(text: Value, to_nfc: Callable[[Value], Value], engine: str) -> Value:
    """With each of the `letters` as its small one, in NFC."""
    # PostgreSQL looks every sign up in all letters, one after the other; few ids need more than
    # those of Latin.
    latin, every = (_translate(text, *letters(last)) for last in ("\u017f", "\U0001ffff"))
    others: Value = to_nfc(ibis.ifelse(text.re_search(_IN_LATIN), latin, every))
    return ibis.ifelse(
        text.re_search(_IN_ASCII), _in_ascii(text, engine), others.replace(*DOTTED_I)
    )


def _replaced(text: Value, steps: Sequence[tuple[str, str]]) -> Value:
    for pattern, replacement in steps:
        text = text.re_replace(pattern, replacement)
    return text
