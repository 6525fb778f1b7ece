"""Numbers with points and commas: what may be thousands or decimals is refused, and not guessed."""

import re

import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.coding import Coder
from rpexplore.data.files.source import FileSource
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.expected_counts_file import csv_of_expected_counts, expected_counts_from_csv
from rpexplore.errors import DataError, DomainError, ReleaseError, RpexploreError
from rpexplore.results.noisy_marginal import NoisyMarginal

INCOME = rp.Attribute("income", rp.Amounts(0, 5000, decimals=1))
SEX = rp.Domain((rp.Attribute("sex", rp.Categories(("F", "M"))),))


@pytest.mark.parametrize("values", [("1.000", "2,5"), ("2,5", "1.000"), ("1.5", "2,5e0")])
@pytest.mark.parametrize("rows", ["{0}\n{1}\n", "{0}\n7\n" + "8\n" * 70_000 + "{1}\n"])
def test_points_beside_decimal_commas_in_a_column_of_records(tmp_path, values, rows):
    """A German file in which 1.000 is a thousand was counted with 1 there, without a word."""
    path = tmp_path / "people.csv"
    lines = rows.format(*values).splitlines()
    path.write_text("income;sex\n" + "".join(f"{line};F\n" for line in lines))
    with pytest.raises(DataError, match=r"nobody can say what 1\.000 is"):
        FileSource(path).count(rp.Domain((INCOME,)), [(0,)])


@pytest.mark.parametrize("texts", [("2,5", "3", "1,25"), ("2.5", "1.000", "3"), ("1e2", "2,5")])
def test_one_mark_in_a_column_is_the_decimal_one(texts):
    coder = Coder(INCOME, has_decimal_commas=True)
    expected = Coder(INCOME).signed_codes(pa.array([text.replace(",", ".") for text in texts]))
    assert coder.signed_codes(pa.array(texts)).tolist() == expected.tolist()


CODEBOOK = "name;type;values\nsex;;F, M\n{}\n"


@pytest.mark.parametrize(
    "row",
    [
        "age;integer;0..1.000",
        "pay;amounts;0..1.000",
        "pay;amounts;1.000..200.000",
        "pay;bins;0 | 1,000 | 5,000",
        "pay;bins;0 | 1.000 | 25.000",
    ],
)
def test_thousands_or_decimals_in_a_codebook(tmp_path, row):
    """Incomes up to a thousand were clamped at 1."""
    path = tmp_path / "codebook.csv"
    path.write_text(CODEBOOK.format(row))
    with pytest.raises(DomainError, match=r"may mean (1000|25000) or \d+\.0000; write it"):
        rp.Domain.load(path)


@pytest.mark.parametrize(
    ("row", "last"),
    [
        ("pay;bins;0 | 0,5 | 1,250", "1.25"),
        ("pay;bins;0 | 1.250 | 2500", "2500"),
        ("pay;bins;0 | 0.125", "0.125"),
        ("pay;bins;0 | 1.2500", "1.25"),
    ],
)
def test_clear_decimals_in_a_codebook(tmp_path, row, last):
    path = tmp_path / "codebook.csv"
    path.write_text(CODEBOOK.format(row))
    assert rp.Domain.load(path)["pay"].labels()[-1].endswith(last)


@pytest.mark.parametrize("counts", [("1.000", "987"), ("1.250", "12.500"), ("2.125", "3.000")])
def test_thousands_or_decimals_of_published_counts(tmp_path, counts):
    content = "sex,count\nF,{}\nM,{}\n".format(*counts)
    with pytest.raises(RpexploreError, match="may mean"):
        expected_counts_from_csv(SEX, content.encode(), "counts.csv")
    path = tmp_path / "noisy.csv"
    path.write_text(content)
    with pytest.raises(ReleaseError, match="may mean"):
        NoisyMarginal.load(SEX, path, 4)


@pytest.mark.parametrize("counts", [("1.000", "98765"), ("0.125", "3.125"), ("12.5", "1.250")])
def test_clear_decimals_of_published_counts(tmp_path, counts):
    content = "sex,count\nF,{}\nM,{}\n".format(*counts)
    found = expected_counts_from_csv(SEX, content.encode(), "counts.csv").counts
    assert found == tuple(map(float, counts))
    path = tmp_path / "noisy.csv"
    path.write_text(content)
    assert NoisyMarginal.load(SEX, path, 4).values.tolist() == list(found)


def test_expected_counts_are_written_so_that_they_can_be_read():
    counts = ExpectedCounts(("sex",), (("F", "M"),), (12.345, 1.25))
    text = csv_of_expected_counts(counts)
    assert re.search("F,12.3450", text)
    assert expected_counts_from_csv(SEX, text.encode(), "counts.csv") == counts


def test_a_mark_within_a_noisy_count(tmp_path):
    path = tmp_path / "noisy.csv"
    path.write_text("sex,count\nF,1_5\nM,2\n")
    with pytest.raises(ReleaseError, match="must have numbers"):
        NoisyMarginal.load(SEX, path, 4)
