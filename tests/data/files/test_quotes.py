"""Quotes in CSV files, looked at by numpy and by Python's strict parser."""

import csv
import io
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rpexplore.data.files import csv_batches
from rpexplore.errors import DataError

TEXTS = st.text(alphabet='",;a\n\ré', max_size=12)
ANY_BLOCK = st.integers(3, 7)  # bytes


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("quotes") / "records.csv"


def accepts(content: bytes, separator: str) -> bool:
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
    try:
        return bool([*csv.reader(text, delimiter=separator, strict=True)]) or True
    except csv.Error:
        return False


def check(path, content: bytes, block: int, separator: str = ",") -> bool:
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_batches, "_BLOCK", block)
        is_plain = csv_batches._has_plain_quotes(path, separator)
        try:
            csv_batches._check_quotes(path, "records.csv", separator)
        except DataError:
            assert not accepts(content, separator)
        else:
            assert accepts(content, separator)
    return is_plain


@given(TEXTS, ANY_BLOCK, st.sampled_from(",;"))
@example('a,"b"c"', 3, ",")
@example('a"b,"c\n"d"', 3, ",")
@example('"a', 3, ",")
def test_what_is_plain_is_accepted_by_the_strict_parser(path, text, block, separator):
    content = text.encode()
    if check(path, content, block, separator):
        assert accepts(content, separator)


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=3)), ANY_BLOCK, st.booleans())
def test_what_is_written_in_quotes_is_plain(path, rows, block, has_mark):
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    mark = b"\xef\xbb\xbf" if has_mark else b""
    assert check(path, mark + text.getvalue().encode(), block)


@pytest.mark.parametrize("block", [3, 4, 8])
def test_every_short_text_is_judged_right(path, block):
    for text in map("".join, product('",a', repeat=4)):
        check(path, text.encode(), block)
