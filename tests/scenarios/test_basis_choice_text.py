"""Basis choices as lines of text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.scenarios.bases import (
    BasisChoice,
    basis_choice_from_text,
    basis_choices_of,
    text_of_basis_choice,
    with_listed_basis_choices,
)
from rpexplore.workload.table_text import texts_of_tables
from tests.support.strategies import described_domains, workloads, workloads_with_bases

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "a=b": 4, "a": 3, "x@y": 3})
OWN = rp.CustomBasis([[1, 0, 0], [1, 1, 0], [1, 1, 1]], name="q@z")


def no_files(path, attribute):
    raise WorkloadError(f"The file {str(path)!r} cannot be read")


@pytest.mark.parametrize(
    ("text", "basis_choice"),
    [
        ("age=prefix", BasisChoice("age", rp.Prefix())),
        (" age=prefix", None),
        ("age= ranges ", BasisChoice("age", rp.Ranges())),
        ("age=identity@age", BasisChoice("age", rp.Identity(), (("age",),))),
        ("age=windows:5", BasisChoice("age", rp.Windows(5))),
        ("age=hierarchy:2,4", BasisChoice("age", rp.Hierarchy((2, 4)))),
        ("age=prefix@sex,age", BasisChoice("age", rp.Prefix(), (("age", "sex"),))),
        ("a=b=prefix", BasisChoice("a=b", rp.Prefix())),
        ("a=prefix", BasisChoice("a", rp.Prefix())),
        ("age=prefix@age,x@y", BasisChoice("age", rp.Prefix(), (("age", "x@y"),))),
        ("age=hierarchy", None),  # no groups
        ("age=hierarchy:3,4", None),
        ("age=windows", None),
        ("age=windows:1,2", None),
        ("age=windows:0", None),
        ("age=cumulative", None),
        ("age=custom:none.csv", None),
        ("age=custom:", None),
        ("age", None),
        ("height=prefix", None),
        ("age=prefix@sex", None),
        ("age=prefix@", None),
        ("age=prefix@age,height", None),
    ],
)
def test_lines(text, basis_choice):
    if basis_choice is None:
        with pytest.raises(RpexploreError):
            basis_choice_from_text(DOMAIN, text, no_files)
    else:
        assert basis_choice_from_text(DOMAIN, text, no_files) == basis_choice


def test_files_are_read_and_may_hold_an_at_sign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q@z.csv").write_text("")
    read = []

    def read_custom(path, attribute):
        read.append((path.name, attribute.name))
        return OWN

    choice = basis_choice_from_text(DOMAIN, "a=custom:q@z.csv@a,x@y", read_custom)
    assert choice == BasisChoice("a", OWN, (("a", "x@y"),))
    assert basis_choice_from_text(DOMAIN, "a=custom:q@z.csv", read_custom) == BasisChoice("a", OWN)
    assert read == [("q@z.csv", "a")] * 2


@given(
    workloads_with_bases(workloads(max_tables=4))
    | workloads_with_bases(workloads(described_domains())),
    st.data(),
)
def test_every_basis_choice_has_lines(workload, data):
    for basis_choice in basis_choices_of(workload):
        tables = list(texts_of_tables(workload.domain, basis_choice.tables))
        lines = text_of_basis_choice(basis_choice, tables, __file__)  # any file that is there

        def own(path, attribute, basis_choice=basis_choice):
            return basis_choice.basis

        again = [basis_choice_from_text(workload.domain, line, own) for line in lines]
        assert {each.basis for each in again} == {basis_choice.basis}
        assert tuple(table for each in again for table in each.tables) == basis_choice.tables


def test_a_later_line_replaces_an_earlier_one():
    workload = rp.Workload.all_up_to(DOMAIN, 2)
    lines = ["age=prefix", "age=ranges@age", "age=windows:3", "age=identity@age,sex"]
    workload = with_listed_basis_choices(
        workload, [basis_choice_from_text(DOMAIN, line, no_files) for line in lines]
    )
    index = DOMAIN.position("age")
    for table, basis in (
        ("age", rp.Ranges()),
        (("age", "sex"), rp.Identity()),
        (("age", "a"), rp.Windows(3)),
    ):
        assert workload.basis_of(workload.position(table), index) == basis


def test_what_would_change_nothing_is_refused():
    workload = rp.Workload.of(DOMAIN, ["age"])
    with pytest.raises(WorkloadError, match="No table has the attribute 'sex'"):
        with_listed_basis_choices(workload, [BasisChoice("sex", rp.Prefix())])
    with pytest.raises(WorkloadError, match=r"\(age × sex\) is not in the workload"):
        with_listed_basis_choices(workload, [BasisChoice("age", rp.Prefix(), (("age", "sex"),))])
