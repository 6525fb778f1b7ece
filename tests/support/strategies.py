"""Hypothesis strategies shared by the tests: domains, workloads, losses, budgets."""

from datetime import date, timedelta
from fractions import Fraction
from functools import partial
from typing import Any
from unicodedata import normalize

from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.common.text import as_seen
from rpexplore.domain.dates import UNITS

LOSSES = [
    rp.SumOfVariances("equal"),
    rp.SumOfVariances("cells"),
    rp.SumOfVariances("sqrt"),
    rp.MaxVariance(),
]


def losses() -> st.SearchStrategy:
    """Any loss that needs no targets."""
    return st.sampled_from(LOSSES)


@st.composite
def domains(draw, *, max_attributes: int = 5, max_size: int = 6):
    """Small domains; sizes of 1 and equal sizes are likely."""
    sizes = draw(st.lists(st.integers(1, max_size), min_size=1, max_size=max_attributes))
    return rp.Domain.from_sizes({f"a{i}": size for i, size in enumerate(sizes)})


@st.composite
def workloads(
    draw,
    in_domains: st.SearchStrategy | None = None,
    *,
    weights: st.SearchStrategy | None = None,
    max_tables: int = 6,
    with_targets: bool = False,
):
    """Any tables of a small domain, with any weights and maybe targets."""
    domain = draw(domains() if in_domains is None else in_domains)
    tables = draw(
        st.lists(
            st.sets(st.sampled_from(domain.names)).map(lambda names: tuple(sorted(names))),
            min_size=1,
            max_size=max_tables,
            unique=True,
        )
    )
    weights = st.floats(0.01, 100) if weights is None else weights
    target = st.floats(0.1, 10)
    return rp.Workload.of(
        domain,
        tables,
        weights=[draw(weights) for _ in tables],
        targets=[draw(target if with_targets else st.none() | target) for _ in tables],
    )


@st.composite
def bases(draw, attribute: rp.Attribute):
    """Any basis that the attribute can have."""
    n = attribute.size
    kinds = ["identity", "prefix", "ranges", "windows", "custom"]
    kinds += ["groups"] if attribute.groups or n == 1 else []
    kinds += ["hierarchy"] if attribute.n_ordered > 2 else []
    match draw(st.sampled_from(kinds)):
        case "prefix":
            return rp.Prefix()
        case "ranges":
            return rp.Ranges()
        case "windows":
            return rp.Windows(draw(st.integers(1, n + 1)))
        case "groups":
            return rp.Hierarchy()
        case "hierarchy":
            widest = attribute.n_ordered - 1
            width = draw(st.integers(2, widest))
            return rp.Hierarchy((width, 2 * width) if 2 * width <= widest else (width,))
        case "custom":
            number = st.integers(-3, 3) | st.sampled_from([0.5, 0.1, 1e-12])
            row = st.lists(number, min_size=n, max_size=n).filter(any)
            more = draw(st.lists(row, max_size=2))
            values = [[int(i == j) for j in range(n)] for i in range(n)]
            labels = draw(st.just([]) | st.just([f" r{r}" for r in range(n + len(more))]))
            return rp.CustomBasis([*values, *more], labels, draw(st.just("") | words()))
    return rp.Identity()


@st.composite
def workloads_with_bases(draw, in_workloads: st.SearchStrategy | None = None):
    """Workloads that ask any attributes in any ways, everywhere or in some tables."""
    workload = draw(workloads() if in_workloads is None else in_workloads)
    for name in draw(st.lists(st.sampled_from(workload.domain.names), max_size=3)):
        having = [table for table in workload.tables if name in table]
        if having:
            some = st.lists(st.sampled_from(having), min_size=1, unique=True)
            tables = draw(st.none() | some)
            workload = workload.with_bases(
                {name: draw(bases(workload.domain[name]))}, tables=tables
            )
    return workload


@st.composite
def budgets(draw, *, least: float = 1e-15, most: float = 1e6):
    """Budgets given in any of the four ways, for a record or a person."""
    value = draw(
        st.floats(least, most)
        | st.decimals(str(least), str(most), allow_nan=False, places=20)
        | st.fractions(Fraction(1, 1000), 1000)
    )
    given_as = draw(st.sampled_from(["privacy_cost", "rho", "mu", "epsilon"]))
    given = {given_as: value}
    if given_as == "mu":  # the privacy cost is its square
        given = {"mu": draw(st.floats(least**0.5, most**0.5))}
    elif given_as == "epsilon":
        given |= {"epsilon": draw(st.floats(1e-3, 50)), "delta": draw(st.floats(1e-30, 0.1))}
    return rp.Budget(**given, max_records_per_person=draw(st.none() | st.integers(1, 50)))


def words(**options) -> st.SearchStrategy[str]:
    """Texts in the form NFC that are not blank: commas, quotes, line ends and any script.

    No surrogates, no NUL, and no signs that turn the direction of reading.
    """
    likely = st.sampled_from(" ,;\"'\n\r\t|\\#ä–")
    turning = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    characters = st.characters(codec="utf-8", min_codepoint=1, exclude_characters=turning) | likely
    texts = st.text(characters, min_size=1, max_size=8, **options).filter(str.strip)
    return texts.map(partial(normalize, "NFC"))


def names() -> st.SearchStrategy[str]:
    """Attribute names: words without control characters."""
    return words().filter(lambda name: all(ord(character) >= 32 for character in name))


@st.composite
def categories(draw):
    """Values with or without labels of their own, some with spellings or compared as numbers."""
    values = draw(st.lists(words(), min_size=1, max_size=5, unique_by=as_seen))
    # Longer than any value is, so that none is there twice.
    spelled = {"spellings": [[f"spelled {value}"] for value in values[:-1]] + [[]]}
    more: dict[str, Any] = draw(st.sampled_from([{}, {}, {}, {}, spelled]))
    if draw(st.booleans()):
        return rp.Categories(tuple(values), **more)
    labels = st.lists(words(), min_size=len(values), max_size=len(values), unique_by=as_seen)
    return rp.Categories(tuple(values), tuple(draw(labels)), **more)


@st.composite
def integers(draw):
    """Whole numbers in groups; the last group may be shorter."""
    minimum = draw(st.integers(-(2**52), 2**52))
    step = draw(st.integers(1, 100))
    missing = draw(st.sampled_from([(), (("", "none"), ("x", 'the "rest"'))]))
    return rp.Integers(minimum, minimum + draw(st.integers(0, 300)), step, missing)


def bins() -> st.SearchStrategy[rp.Bins]:
    """Increasing finite edges."""
    edges = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60)
    edges = st.lists(edges.map(float), min_size=2, max_size=6, unique=True)
    return edges.map(lambda listed: rp.Bins(tuple(sorted(listed))))


@st.composite
def dates(draw):
    """Days by a step or between edges, some with a format of their own and cells for none."""
    days = st.dates(min_value=date(1800, 1, 1), max_value=date(2200, 1, 1))
    more: dict[str, Any] = {
        "format": draw(st.sampled_from(["", "%d/%m/%Y", "%Y%m%d %H:%M"])),
        "missing": draw(st.sampled_from([(), (("", "none"),), (("1700-01-01", "x"), ("-9", "x"))])),
    }
    if draw(st.booleans()):
        edges = draw(st.lists(days, min_size=2, max_size=6, unique=True))
        return rp.Dates(edges=tuple(sorted(edges)), **more)
    step = f"{draw(st.integers(1, 20))} {draw(st.sampled_from(UNITS))}s"
    first = draw(days)
    return rp.Dates(first, first + timedelta(draw(st.integers(0, 300))), step, **more)


@st.composite
def described_domains(draw, values: st.SearchStrategy | None = None, *, titles: bool = True):
    """Domains with labels, groups of numbers, intervals and days, as codebooks describe them."""
    values = categories() | integers() | bins() | dates() if values is None else values
    title = st.just("") | words() if titles else st.just("")
    return rp.Domain(
        tuple(
            rp.Attribute(name, draw(values), draw(title))
            for name in draw(st.lists(names(), min_size=1, max_size=4, unique_by=as_seen))
        )
    )
