"""What tables are called when their attributes have other bases."""

import numpy as np

import rpexplore as rp
from rpexplore.workload.bases import CustomBasis, Hierarchy, Identity, Prefix, Ranges, Windows
from rpexplore.workload.table_text import titles

DOMAIN = rp.Domain.from_sizes({"age": 6, "sex": 2})
TABLES = rp.Workload.all_up_to(DOMAIN, 2)


def titled(workload):
    return titles(workload, np.arange(len(workload)))


def test_marginals_are_called_by_their_attributes():
    assert titled(TABLES) == ["(total)", "age", "sex", "age × sex"]


def test_other_bases_stand_in_brackets():
    names = {
        Prefix(): "cumulative",
        Ranges(): "ranges",
        Windows(3): "moving sums of 3",
        Windows(6): "cumulative",
        Hierarchy((2, 4)): "hierarchy of 2 and 4",
        CustomBasis(np.eye(6).tolist(), (), "bands"): "bands",
        CustomBasis(np.eye(6).tolist()): "own matrix",
    }
    for basis, name in names.items():
        names = titled(TABLES.with_bases({"age": basis}))
        assert names == ["(total)", f"age ({name})", "sex", f"age ({name}) × sex"]


def test_titles_say_the_bases_of_a_table():
    workload = TABLES.with_bases({"age": Prefix()}).with_bases(
        {"age": Identity()}, tables=[("age", "sex")]
    )
    assert titled(workload) == ["(total)", "age (cumulative)", "sex", "age × sex"]
    assert titles(workload, np.array([3, 1])) == ["age × sex", "age (cumulative)"]
