"""The atoms of conditions: what the conditions tell apart, and no more, of any number of cells."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.domain.atoms import Atoms
from rpexplore.errors import DomainError, RpexploreError, WorkloadError
from rpexplore.workload import query_definitions, query_list
from rpexplore.workload.condition_atoms import ConditionAtoms
from rpexplore.workload.conditions import (
    cells_of_condition,
    condition_of_atoms,
    condition_of_cells,
)
from rpexplore.workload.query_definitions import (
    stated_from_json,
    stated_from_text,
    stated_to_json,
    text_from_stated,
)
from rpexplore.workload.query_edits import about_attributes, with_queries
from tests.support.strategies import described_domains, domains


def atoms_of(domain: rp.Domain, texts: list[str]) -> tuple[Atoms, np.ndarray]:
    conditions = ConditionAtoms(domain)
    for text in texts:
        conditions.add(text)
    return conditions.made(texts)


@given(domains(max_attributes=4) | described_domains(), st.data())
def test_conditions_hold_in_atoms_as_they_do_in_cells(domain, data):
    """Against all cells: the same cells, no two atoms alike, and the way back."""
    n_cells = math.prod(domain.sizes.tolist())
    assume(n_cells <= 300)
    counted = st.lists(st.booleans(), min_size=n_cells, max_size=n_cells).filter(any)
    texts = [
        condition_of_cells(domain, np.array(cells))
        for cells in data.draw(st.lists(counted, min_size=1, max_size=4))
    ]
    atoms, holds = atoms_of(domain, texts)
    of_cells = atoms.of_cells()
    for text, row in zip(texts, holds, strict=True):
        assert row[of_cells].tolist() == cells_of_condition(domain, text).tolist()
    assert len(np.unique(holds, axis=1).T) == len(atoms) == len(set(of_cells.tolist()))
    assert atoms.n_combinations.sum() == math.prod(atoms.n_groups)
    # Each example is a combination of groups of its own atom; groups are those of the records.
    codes = dict(enumerate(np.array(list(product(*map(range, domain.sizes.tolist())))).T))
    assert atoms.of_records(codes).tolist() == of_cells.tolist()
    assert atoms.of_groups(list(atoms.examples.T)).tolist() == list(range(len(atoms)))
    assert Atoms.from_json(domain, atoms.to_json()) == atoms
    for row in holds:
        text = condition_of_atoms(atoms, row)
        assert text is not None
        assert cells_of_condition(domain, text).tolist() == row[of_cells].tolist()


def test_adults_in_the_north_by_sex_are_eight_groups_and_not_2_400_cells():
    domain = rp.Domain.from_sizes({"age": 100, "region": 12, "sex": 2})
    text = "\n".join(
        f"{name}, {sex}: {condition} & sex == {sex} ± 10"
        for name, condition in (("adults", "age >= 18 & region == 3"), ("all", "total"))
        for sex in (0, 1)
    )
    queries = stated_from_text(domain, text).queries
    assert queries.cells_text == "4 groups of 2,400 cells"
    assert queries.coefficients.tolist() == [
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 0, 1, 0],
        [0, 1, 0, 1],
    ]
    assert queries.cell_labels == (
        "age <= 17 & (region <= 2 | region >= 4) & sex == 0 and 2 more",
        "age <= 17 & (region <= 2 | region >= 4) & sex == 1 and 2 more",
        "age >= 18 & region == 3 & sex == 0",
        "age >= 18 & region == 3 & sex == 1",
    )


def test_values_that_only_comparisons_tell_apart_are_one_group():
    domain = rp.Domain.from_sizes({"age": 100, "sex": 2, "region": 12})
    plain, _ = atoms_of(domain, ["age >= 18 & sex == 1", "region < 3"])
    same, _ = atoms_of(domain, ["(age < 40 | age >= 40) & age >= 18 & sex == 1", "region < 3"])
    assert same == plain
    assert same.n_groups == [2, 2, 2]


def test_lists_of_1e9_cells_and_of_40_attributes_are_small():
    billion = rp.Domain.from_sizes({"a": 1000, "b": 1000, "c": 1000})
    queries = stated_from_text(billion, "a < 10 & b >= 5 ± 3\nc == 7 | a < 10 ± 2").queries
    # The first holds only where the second does.
    assert queries.cells_text == "3 groups of about 1 billion cells"
    many = rp.Domain.from_sizes({f"a{number}": 3 for number in range(40)})
    all_of = " & ".join(f"a{number} != 1" for number in range(40))
    one_of = " | ".join(f"a{number} == 1" for number in range(20))
    queries = stated_from_text(many, f"{all_of} ± 3\n{one_of} ± 2").queries
    # 3^40 cells, 2^40 combinations of groups; at most one of the two conditions holds.
    assert queries.cells_text == "3 groups of about 10^19 cells"
    assert sorted(queries.coefficients.T.tolist()) == [[0, 0], [0, 1], [1, 0]]


def test_a_list_that_tells_too_much_apart_is_refused_and_the_count_named(monkeypatch):
    monkeypatch.setattr(query_list, "MAX_WORK", 900_000)
    monkeypatch.setattr(query_list, "MAX_ENTRIES", 1)
    domain = rp.Domain.from_sizes({"a": 500, "b": 500})
    lines = [f"a{cut}: a < {cut} ± 3\nb{cut}: b < {cut} ± 3" for cut in range(1, 50)]
    lines.append("both: a == 7 & b == 8 ± 3")
    with pytest.raises(
        WorkloadError,
        match=r"20,000 groups of cells apart, and 42 counts at most 468, .* with the 41 before it, "
        r"the count 'b21' .* condition of 'both' splits most, into 4\. .* a \(50\) and b \(50\)",
    ):
        stated_from_text(domain, "\n".join(lines))
    # 41 counts, 22 · 21 groups: 41² · 503 = 845,543; the next one: 42² · (42 + 22 · 22) is above.
    lines.append("each: b < 9 by a ± 3")
    with pytest.raises(WorkloadError, match=r"The counts 'each by a' split most, into 1,000\."):
        stated_from_text(domain, "\n".join(lines))
    many = rp.Domain.from_sizes({f"a{number}": 2 for number in range(70)})
    with pytest.raises(WorkloadError, match=r"at most 2\^62 .* a5 \(2\) and 64 more"):
        stated_from_text(many, "\n".join(f"a{number} == 1 ± 3" for number in range(70)))


def test_all_that_tells_20_000_groups_apart_is_accepted_up_to_what_a_search_takes():
    """Against the rule itself: k² (m + n) ≤ 4·10⁹, k the smaller of both, or m n ≤ 2·10⁶."""
    for n_counts in (1, 2, 442, 443, 600, 1_414, 1_415, 5_000, query_list.MAX_QUERIES):
        most = query_list.most_atoms(n_counts)
        k = min(n_counts, most)
        assert k**2 * (n_counts + most) <= 4e9 or n_counts * most <= 2e6
        query_list.check_list_size(n_counts, most)
        assert (most == 20_000) == (n_counts <= 442)
        if most < 20_000:
            more = most + 1
            k = min(n_counts, more)
            assert k**2 * (n_counts + more) > 4e9
            assert n_counts * more > 2e6
            with pytest.raises(WorkloadError, match=rf"at most {most:,} cells .* got {more:,}"):
                query_list.check_list_size(n_counts, more)
    with pytest.raises(WorkloadError, match="at most 442 counts over so many"):
        query_list.check_list_size(443, 20_000)


def test_what_holds_for_nobody_is_refused_by_its_line():
    domain = rp.Domain.from_sizes({"a": 100, "b": 100})
    with pytest.raises(WorkloadError, match=r"Line 2: The condition 'a < 3 & a > 5' holds for no"):
        stated_from_text(domain, "b < 3 ± 4\na < 3 & a > 5 ± 4")
    with pytest.raises(WorkloadError, match=r"The name 'x' was given before \(line 1\)"):
        stated_from_text(domain, "x: b < 3 ± 4\nx: a < 3 ± 4")


@given(domains(max_attributes=3), st.data())
def test_lists_with_many_cells_are_edited_and_kept_as_others_are(domain, data):
    """The same edits by atoms and by cells."""
    n_cells = math.prod(domain.sizes.tolist())
    assume(n_cells <= 200)
    counted = st.lists(st.booleans(), min_size=n_cells, max_size=n_cells).filter(any)
    texts = [
        f"q{number}: {condition_of_cells(domain, np.array(cells))} ± {number + 1}"
        for number, cells in enumerate(data.draw(st.lists(counted, min_size=2, max_size=4)))
    ]
    first, rest = texts[0], "\n".join(texts[1:])

    def edited():
        return with_queries(stated_from_text(domain, first), stated_from_text(domain, rest))

    def of_cells():
        try:
            return edited()
        except RpexploreError as error:
            return str(error)

    by_cells = of_cells()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_definitions, "MAX_CELLS", 0)
        patch.setattr("rpexplore.workload.query_edits.MAX_CELLS", 0)
        by_atoms = of_cells()
        if isinstance(by_cells, str):
            assert by_atoms == by_cells
            return
        assert not isinstance(by_atoms, str)
        assert by_atoms.queries.names == by_cells.queries.names
        assert by_atoms.targets == by_cells.targets
        rows = by_atoms.queries.coefficients[:, by_atoms.queries.atoms.of_cells()]
        assert np.array_equal(rows, by_cells.queries.coefficients)
        assert stated_from_json(stated_to_json(by_atoms)) == by_atoms
        assert stated_from_text(domain, text_from_stated(by_atoms)) == by_atoms
        assert about_attributes(by_atoms, domain) == by_atoms


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda json: json["groups"][0][0].append([17, 17]), "each in one group, got .17, 17."),
        (lambda json: json["groups"][0][0].pop(), r"got \[\]"),
        (lambda json: json["groups"][0].pop(), "every value must be in a group"),
        (lambda json: json["groups"].pop(), "groups and steps for each attribute"),
        (lambda json: json["groups"][0].reverse(), "in the order of their first values"),
        (lambda json: json["steps"][0][0].append(0), "1 rows of 2"),
        (lambda json: json["steps"][1][0].__setitem__(0, 4), "to all of them"),
        (lambda json: json["steps"][1][0].__setitem__(0, 10**8), "whole numbers from 0"),
        (lambda json: json["steps"][1][0].__setitem__(0, True), "whole numbers from 0"),
    ],
)
def test_atoms_of_a_file_that_are_none_are_refused(change, said):
    domain = rp.Domain.from_sizes({"age": 100, "sex": 2})
    content = atoms_of(domain, ["age >= 18 & sex == 1", "age >= 18"])[0].to_json()
    assert content["groups"] == [[[[0, 17]], [[18, 99]]], [[[0, 0]], [[1, 1]]]]
    assert content["steps"] == [[[0, 1]], [[0, 0], [1, 2]]]
    change(content)
    with pytest.raises((DomainError, RpexploreError), match=said):
        Atoms.from_json(domain, content)
