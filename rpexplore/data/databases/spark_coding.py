"""Codes of values as Spark's SQL makes them, many of them in one whole number.

A value on its way from Spark's rows to Python costs more than what is done with it there, so that
what is plain is looked up before: texts letter by letter as they stand in the codebook, and whole
numbers. What is not found so may still be in the codebook, written in another way. `Coder` tells,
of a second reading: what a value means is said there alone.

Texts of a codebook are part of a statement as hexadecimal digits only.
"""

from collections.abc import Collection, Mapping

from rpexplore.data.coding import MISSING, UNKNOWN, compared_values
from rpexplore.data.databases.packing import words_of
from rpexplore.data.databases.request import Request
from rpexplore.data.databases.spark_words import Layout
from rpexplore.domain.attribute import Attribute, Categories, Integers

WHOLE = ("tinyint", "smallint", "int", "bigint")
_TEXT = "string"  # no collation of its own

_MOST_LISTED = 32  # Spark compares one after the other; with more, Arrow and its lookup are faster
_EXACT = 2**53  # whole numbers up to here are what `Coder` compares as floating point
# Attributes whose code together stays below the 8,000 bytes of a method that Java compiles. Spark
# makes one method of an operator, unless one of its expressions has no code, as those on arrays.
_MOST_IN_A_METHOD = 20


def layout_of(kinds: Mapping[str, str], request: Request, unlisted: Collection[int]) -> Layout:
    """Which attributes are looked up by Spark, and which values go to the workers as they are.

    Args:
        kinds: Spark's type of each column.
        unlisted: Attributes known to hold other values than those that are looked up.
    """
    listed = [
        index
        for index in request.attribute_indices
        if index not in unlisted
        and _lookup(request.domain.attributes[index], kinds, code_bit=0) is not None
    ]
    unlisted = [index for index in request.attribute_indices if index not in listed]
    words = words_of(request, listed) if listed else ()
    return Layout(tuple(map(dict, words)), tuple(unlisted))


def word_expressions(kinds: Mapping[str, str], request: Request, layout: Layout) -> list[str]:
    """Expressions w0, w1, … : sums of codes, each multiplied by the power of two that it is at."""
    expressions = []
    for position, word in enumerate(layout.words):
        terms, column = [], ""
        for name, bit in word.items():
            attribute = request.domain.attributes[int(name[1:])]
            column = quoted(attribute.name)
            code = _lookup(attribute, kinds, bit)
            unlisted = f"IF({column} IS NULL, {MISSING << bit}L, {UNKNOWN << bit}L)"
            terms.append(f"coalesce({code}, {unlisted})")
        if sum(map(len, layout.words)) > _MOST_IN_A_METHOD:
            # 0, and Spark cannot know that.
            terms.append(f"IF(hash({column}) = 0, size(transform(array({column}), x -> x)) - 1, 0)")
        expressions.append(f"{' + '.join(terms)} AS w{position}")
    return expressions


def _lookup(attribute: Attribute, kinds: Mapping[str, str], code_bit: int) -> str | None:
    """The code of a value, shifted to this bit; None for a column that Spark cannot look up."""
    values, kind = attribute.values, kinds[attribute.name]
    column = quoted(attribute.name)
    if isinstance(values, Integers):
        if kind not in WHOLE or max(abs(values.minimum), abs(values.maximum)) > _EXACT:
            return None
        steps = f"(CAST({column} AS BIGINT) - {values.minimum}L)"
        if values.step > 1:
            steps = f"({steps} DIV {values.step}L)"
        return (
            f"IF({column} BETWEEN {values.minimum}L AND {values.maximum}L, "
            f"shiftleft({steps}, {code_bit}), NULL)"
        )
    if not isinstance(values, Categories) or values.size > _MOST_LISTED:
        return None
    texts = compared_values(values)
    if kind == _TEXT:
        key = f"CAST({column} AS BINARY)"  # of two texts that a collation takes for one
        keys = {f"X'{text.encode().hex()}'": code for code, text in enumerate(texts)}
    elif kind in WHOLE:
        key = f"CAST({column} AS BIGINT)"
        keys = {f"{text}L": code for code, text in enumerate(texts) if _is_whole(text)}
    else:
        return None
    entries = ", ".join(f"{text}, {code << code_bit}L" for text, code in keys.items())
    return f"try_element_at(map({entries}), {key})" if keys else None


def _is_whole(text: str) -> bool:
    """Whether a text is what a whole number of 64 bits becomes as a text, the smallest left out."""
    try:
        number = int(text)
    except ValueError:
        return False
    return str(number) == text and abs(number) < 2**63


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
