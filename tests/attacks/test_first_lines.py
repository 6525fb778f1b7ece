"""A file of records, without a header, in place of a list: no error shows its first record."""

import pytest

import rpexplore as rp
from rpexplore.domain.codebook_rows import attributes_from_csv
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.errors import RpexploreError
from rpexplore.workload.query_files import stated_from_csv
from rpexplore.workload.table_text import workload_from_csv

DOMAIN = rp.Domain.from_sizes({"sex": 2, "age": 3})
READERS = {
    "codebook": lambda text: attributes_from_csv(text, "x.csv"),
    "expected": lambda text: expected_counts_from_csv(DOMAIN, text.encode(), "x.csv"),
    "counts": lambda text: stated_from_csv(DOMAIN, text.encode(), "x.csv"),
    "tables": lambda text: workload_from_csv(DOMAIN, text, "x.csv"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("record", ["Moser,0,77123,1", "Moser;m;north", "Moser", "77123"])
def test_no_error_shows_the_first_record_of_a_file_without_a_header(reader, record):
    with pytest.raises(RpexploreError, match="none of these names") as refusal:
        READERS[reader](f"{record}\n{record}\n")
    told = str(refusal.value).lower()
    assert not any(
        cell.lower() in told for cell in record.replace(";", ",").split(",") if len(cell) > 1
    )


@pytest.mark.parametrize("reader", READERS)
def test_names_of_columns_are_shown_where_one_is_known(reader):
    header = {"codebook": "attribute,wert", "expected": "sex,wert", "counts": "by,wert"}
    with pytest.raises(RpexploreError, match="wert"):
        READERS[reader](header.get(reader, "target,wert") + "\n1,2\n")
