"""Own questions as files: read again exactly, under names that every system has."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.common.text import as_seen
from rpexplore.errors import WorkloadError
from rpexplore.reports.recipe import custom_basis_files
from tests.reports.scenarios import SCENARIOS
from tests.support.strategies import described_domains, words

ROWS = [[1, 0, 0], [0.1, 1, 0], [1, 1, 1]]


def domain() -> rp.Domain:
    return rp.Domain(
        (rp.Attribute("a", rp.Categories(("x", " y", "3"))), rp.Attribute("b", rp.Integers(0, 2)))
    )


def names_of(**own: rp.CustomBasis) -> list[str]:
    workload = rp.Workload.all_of_order(domain(), 1).with_bases(own)
    files = custom_basis_files(workload)
    for (attribute_index, basis), (name, text) in files.items():
        attribute = workload.domain.attributes[attribute_index]
        assert rp.CustomBasis.read(text.encode(), name, attribute) == basis
    return [name for name, _ in files.values()]


def test_they_are_csv_where_that_says_all():
    assert names_of(
        a=rp.CustomBasis(ROWS, name="My questions"),
        b=rp.CustomBasis(ROWS, ["p", "q", "r"], "other"),
    ) == [
        "My questions.csv",
        "other.csv",
    ]
    assert names_of() == []


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", "tables", "Plan", "x ", "é", "." * 3, "q" * 90]
)
def test_names_that_are_no_file_names_are_written_as_json(name):
    assert names_of(a=rp.CustomBasis(ROWS, name=name)) == ["custom-basis-1.json"]


def test_labels_that_csv_cannot_keep_are_written_as_json():
    assert names_of(a=rp.CustomBasis(ROWS, [" p", "q", "r"], "mine")) == ["custom-basis-1.json"]


def test_two_of_one_name_do_not_overwrite_each_other():
    other = rp.CustomBasis([[1, 0, 0], [0, 1, 0], [0, 0, 1]], name="MINE")
    assert names_of(a=rp.CustomBasis(ROWS, name="mine"), b=other) == [
        "mine.csv",
        "custom-basis-1.json",
    ]
    third = rp.CustomBasis(ROWS, name="custom-basis-1")
    assert names_of(a=third, b=rp.CustomBasis(ROWS, name="?")) == [
        "custom-basis-1.csv",
        "custom-basis-2.json",
    ]


@given(described_domains(), st.data())
def test_every_file_is_read_again_exactly(any_domain, data):
    attribute = any_domain.attributes[0]
    n = attribute.size
    if n > 30:  # of which a list of labels takes long to draw
        return
    rows = [[int(i == j) for j in range(n)] for i in range(n)]
    rows.append([data.draw(st.sampled_from([0.1, -2, 1e-12, 1 / 3, 1e12])) for _ in range(n)])
    labels = st.lists(words(), min_size=n + 1, max_size=n + 1, unique_by=as_seen)
    own = rp.CustomBasis(
        rows, data.draw(st.just([]) | labels), data.draw(words() | st.just("mine"))
    )
    workload = rp.Workload.of(any_domain, [(attribute.name,)]).with_bases({attribute.name: own})
    ((name, text),) = custom_basis_files(workload).values()
    assert re.fullmatch(r"[A-Za-z0-9 _-]+\.(csv|json)", name)
    assert rp.CustomBasis.read(text.encode(), name, attribute) == own


def test_scenarios_have_both_kinds():
    assert [name for name, _ in custom_basis_files(SCENARIOS["own"].workload).values()] == [
        "young and old.csv",
        "custom-basis-1.json",
    ]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"\xff", "q.csv", "not UTF-8"),
        (b"{}", "q.json", "rows, labels and name"),
        (b"[", "q.json", "rows, labels and name"),
        (b'{"rows": [[1, 2]], "labels": [], "name": ""}', "q.json", "one number for each"),
        (b"1,0,0", "q.txt", r"\.csv, \.npy or \.json file, got 'q\.txt'"),
        (b"", "q.npy", "not a matrix"),
    ],
)
def test_what_is_no_file_of_questions_is_refused(content, name, message):
    with pytest.raises(WorkloadError, match=message):
        rp.CustomBasis.read(content, name, domain()["a"])
