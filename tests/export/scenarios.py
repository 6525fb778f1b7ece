"""Scenarios that ask for their tables in every way, and with every kind of name."""

import rpexplore as rp
from rpexplore.request import WorkloadRequest
from rpexplore.scenario import Scenario
from rpexplore.settings import GroupSetting, TableSetting

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
    "naïve 名前 \u202eabc",
]
HOSTILE_VALUES = ("line\nbreak", 'q"q', "c,c", "'''", '"""', "\\", "x\r\n", " blank ", "{x}")


def hostile_domain() -> rp.Domain:
    values = rp.Categories(HOSTILE_VALUES, tuple(f"<i>{value}" for value in HOSTILE_VALUES))
    return rp.Domain(tuple(rp.Attribute(name, values, f"{name} label") for name in HOSTILE))


def survey() -> rp.Domain:
    return rp.Domain(
        (
            rp.Attribute("age", rp.Integers(0, 99, step=5), "Age in years"),
            rp.Attribute("sex", rp.Categories(("F", "M"), ("Female", "Male"))),
            rp.Attribute("region", rp.Categories(tuple(f"R{i:02}" for i in range(12)))),
            rp.Attribute("income", rp.Bins((0, 500, 1000.5, 20_000))),
            rp.Attribute("one", rp.Categories(("only",))),
        )
    )


def scenarios() -> dict[str, Scenario]:
    domain = survey()
    wide = rp.Domain.from_sizes({f"a{i:02}": 2 for i in range(12)})
    triples = rp.Workload.all_up_to(wide, 3).tables
    listed = ((), ("age",), ("sex", "region"))
    return {
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
            counted="people",
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
            counted="<i>people</i>",
        ),
    }


SCENARIOS = scenarios()
