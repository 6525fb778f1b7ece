"""Scenarios that ask for their tables in every way, and with every kind of name."""

import rpexplore as rp
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.scenarios.board_notes import BoardNotes
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest

# Names and values that HTML, Markdown, Python, CSV or a shell would read as something else.
HOSTILE = [
    "</script><script>alert(1)</script>",
    'a,b "quoted"; it\'s × $(rm) `x`',
    "--out=/etc/passwd",
    "total",
    "<b>&amp;",
    "a,b",
    "a",
    "b",
    "{braces} %s \\n",
    "naïve 名前 abc",
]
HOSTILE_VALUES = ("line\nbreak", 'q"q', "c,c", "'''", '"""', "\\", "x\r\n", " blank ", "{x}")


def hostile_domain() -> rp.Domain:
    labels = tuple(f"<i>{value}" for value in HOSTILE_VALUES)
    spellings = tuple((f"~{value}",) for value in HOSTILE_VALUES)
    values = rp.Categories(HOSTILE_VALUES, labels, spellings)
    attributes = tuple(rp.Attribute(name, values, f"{name} label") for name in HOSTILE)
    named = [value for value in HOSTILE_VALUES if value == value.strip()]  # as selections can
    return rp.Domain(attributes, [dict.fromkeys(HOSTILE, value) for value in named])


def survey() -> rp.Domain:
    return rp.Domain(
        (
            rp.Attribute("age", rp.Integers(0, 99, step=5), "Age in years"),
            rp.Attribute("sex", rp.Categories(("F", "M"), ("Female", "Male"))),
            rp.Attribute("region", rp.Categories(tuple(f"R{i:02}" for i in range(12)))),
            rp.Attribute("income", rp.Bins((0, 500, 1000.5, 20_000))),
            rp.Attribute("one", rp.Categories(("only",))),
        ),
        [{"age": "0..14", "income": "1000.5.."}],
    )


def scenarios() -> dict[str, Scenario]:
    domain = survey()
    wide = rp.Domain.from_sizes({f"a{i:02}": 2 for i in range(12)})
    triples = rp.Workload.all_up_to(wide, 3).tables
    listed = ((), ("age",), ("sex", "region"))
    wage = rp.Amounts("-0.5", 20_000, decimals=1, unit="€", missing=(("", "not stated"),))
    paid = rp.Domain((*domain.attributes, rp.Attribute("wage", wage)))
    sums = (("region", "wage"), ("wage",), ("sex", "region"))
    weighted = rp.Domain(
        (*domain.attributes, rp.Attribute("weight", rp.Amounts(0, "40.5", 1, "", (), True)))
    )
    return {
        "weights": Scenario(
            weighted,
            WorkloadRequest(
                "up_to",
                order=2,
                weighted_by="weight",
                unweighted=(("sex",), ("age",)),
                settings=(TableSetting(("age", "weight"), 2.0), TableSetting(("sex",), 3.0)),
            ),
        ),
        "amounts": Scenario(
            paid,
            WorkloadRequest(
                "listed",
                listed=sums,
                settings=(TableSetting(("wage",), 2.0, rp.Target("250000.5")),),
            ),
        ),
        "up to": Scenario(domain, WorkloadRequest("up_to", order=2)),
        "of order": Scenario(
            domain,
            WorkloadRequest("of_order", order=2),
            rp.SumOfVariances("sqrt"),
            rp.Budget(rho="1/3"),
        ),
        "at most cells": Scenario(
            domain,
            WorkloadRequest("at_most_cells", cells=90),
            rp.MaxVariance(),
            rp.Budget(epsilon="1.5", delta="1e-9"),
            record_noun="people",
            name="Cells & <more>",
            note="First line\nimport os  # second 'line'",
        ),
        "listed": Scenario(
            domain,
            WorkloadRequest("listed", listed=listed, settings=(TableSetting((), 2.0, 3.25),)),
            rp.SumOfVariances("cells"),
            rp.Budget(mu="0.7", max_records_per_person=3),
        ),
        "targets": Scenario(
            domain,
            WorkloadRequest(
                "up_to",
                order=1,
                groups=(GroupSetting((), target=20.0),),
                settings=(TableSetting(("sex",), target=4.0),),
            ),
            rp.MaxVariance("target"),
            rp.Budget(privacy_cost="0.02"),
        ),
        "units": Scenario(
            domain,
            WorkloadRequest(
                "up_to",
                order=2,
                groups=(
                    GroupSetting(("age",), target="±50 required"),
                    GroupSetting(("age", "sex"), target=30),
                ),
                settings=(
                    TableSetting(("sex",), target="5 % of 1000"),
                    TableSetting(("region",), target="12.50 required"),
                ),
            ),
            rules=(
                rp.Rule("0.2", "0.9"),
                rp.Rule("0.025", "0.5", "cells", [("age",), ("age", "sex")], "surely"),
            ),
        ),
        "groups": Scenario(
            domain,
            WorkloadRequest(
                "up_to",
                order=3,
                groups=(
                    GroupSetting((), weight=2.0),
                    GroupSetting(("region",), factor=0.1),
                    GroupSetting(("sex", "region"), target=12.5),
                ),
                settings=(TableSetting(("age", "sex"), 7.0), TableSetting(("one",), 3.0)),
            ),
        ),
        "narrowed": Scenario(
            domain,
            WorkloadRequest(
                "up_to", order=3, only=("age", "sex", "region"), containing=("sex",), most_cells=300
            ),
        ),
        "higher order than attributes": Scenario(domain, WorkloadRequest("up_to", order=9)),
        "long list": Scenario(
            wide,
            WorkloadRequest(
                "listed",
                listed=tuple(triples[1:]),
                settings=(TableSetting(("a00",), 0.3, 1 / 3), TableSetting(("a01",), 1e-7)),
            ),
        ),
        "hostile": Scenario(
            hostile_domain(),
            WorkloadRequest(
                "listed",
                listed=((), ("total",), ("a", "b"), ("a,b",), tuple(HOSTILE[:3]), (HOSTILE[-1],)),
                settings=(TableSetting(("a", "b"), 2.0), TableSetting((), None, 9.0)),
            ),
            name=HOSTILE[0],
            note='\'; rm -rf "$HOME"\n</style><img src=x onerror=alert(1)>',
            record_noun="<i>people</i>",
            public=(
                rp.PublicTable(
                    ExpectedCounts(("a",), (HOSTILE_VALUES,), tuple(range(1, 10))),
                    HOSTILE[0],
                    "2021",
                    "<script>alert(1)</script>, ; #",
                ),
            ),
            board=BoardNotes(
                (("Targets", "$(rm) <b>`x`\nline"),), (HOSTILE[0],), HOSTILE[1], "", (HOSTILE[8],)
            ),
        ),
    }


def grouped() -> rp.Domain:
    regions = rp.Attribute(
        "region",
        rp.Categories(tuple(f"R{i}" for i in range(6))),
        groups=(("North", "A"), ("North", "A"), ("North", "B"), ("South",), ("South",), ()),
    )
    return rp.Domain((rp.Attribute("age", rp.Integers(0, 9)), regions, *survey().attributes[3:]))


def hostile_questions() -> rp.CustomBasis:
    """Labels and a name that CSV, a shell or a file name would read as something else."""
    size = len(HOSTILE_VALUES)
    rows = [[float(row <= column) for column in range(size)] for row in range(size)]
    labels = tuple(f" {value}" for value in HOSTILE_VALUES)
    return rp.CustomBasis([*rows, [0.1] * size], (*labels, "3"), "../$(rm) 'x'")


def with_bases() -> dict[str, Scenario]:
    """Scenarios that ask attributes in every way."""
    bands = rp.CustomBasis(
        [[1] * 5 + [0] * 5, [0] * 5 + [1] * 5, *map(list, _UNITS)], name="young and old"
    )
    own = (
        BasisChoice("age", bands),
        BasisChoice("age", rp.CustomBasis(_UNITS, name="tables"), (("age", "income"),)),
    )
    return {
        "prefix": Scenario(
            grouped(),
            WorkloadRequest(
                "up_to",
                order=2,
                basis_choices=(
                    BasisChoice("age", rp.Prefix()),
                    BasisChoice("age", rp.Identity(), (("age", "region"), ("age", "one"))),
                    BasisChoice("region", rp.Hierarchy()),
                    BasisChoice("income", rp.Ranges(), (("income",), ("age", "region", "income"))),
                    BasisChoice("one", rp.Windows(2)),
                ),
                settings=(TableSetting(("age",), 2.0, 9.5),),
            ),
        ),
        "even totals": Scenario(
            grouped(),
            WorkloadRequest(
                "of_order", order=1, basis_choices=(BasisChoice("age", rp.Windows(3)),)
            ),
            rp.MaxVariance(),
            uniform_reference=True,
        ),
        "own": Scenario(
            grouped(), WorkloadRequest("up_to", 2, only=("age", "income"), basis_choices=own)
        ),
        "hostile basis_choices": Scenario(
            hostile_domain(),
            WorkloadRequest(
                "listed",
                listed=((), ("total",), ("a", "b"), ("a,b",), (HOSTILE[0], HOSTILE[1])),
                basis_choices=(
                    BasisChoice("a,b", rp.Hierarchy((2, 4))),
                    BasisChoice(HOSTILE[0], rp.Prefix(), ((HOSTILE[0], HOSTILE[1]),)),
                    BasisChoice("total", hostile_questions()),
                ),
            ),
        ),
        "long list with bases": Scenario(
            rp.Domain.from_sizes({f"a{i:02}": 3 for i in range(10)}),
            WorkloadRequest(
                "of_order",
                3,
                groups=(GroupSetting(("a01",), target=8.0),),
                basis_choices=(BasisChoice("a01", rp.Prefix(), (("a00", "a01", "a02"),)),),
            ),
        ),
    }


_UNITS = [[int(row == column) for column in range(10)] for row in range(10)]
SCENARIOS = scenarios() | with_bases()
