"""Sources: what was measured on which records, and what it cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from rpexplore.common.json_fields import positive_exact, text_of
from rpexplore.common.numbers import exact_text
from rpexplore.common.text import plural, rounded
from rpexplore.errors import ReleaseError
from rpexplore.privacy.budget import ADD_REMOVE, Budget, change_of
from rpexplore.privacy.conversions import epsilon_from_rho, epsilon_texts, rho_text
from rpexplore.releases.finished_release import PartRelease
from rpexplore.releases.items import PartReader
from rpexplore.releases.manifest import manifest_sha256

# What is made of several sources has their costs in common: each is a ρ for its own privacy unit,
# and all of them are added for one record. For a person with at most m records it is m² times that.


SPENT = ("rho", "rho_is_known", "max_records_per_person", "sources")  # in manifests

_MOST_LISTED = 6  # amounts of ρ that are shown one by one


@dataclass(frozen=True)
class MeasurementSource:
    """A release, or a noisy marginal from elsewhere.

    name          what people call it: the folder of a release, the file of a noisy marginal
    sha256        of a release's manifest, or of the counts of a noisy marginal, in hexadecimal
    rho           the ρ of zCDP that it spent, exact, for its unit; None if nobody stated it
    max_records_per_person
                  of its privacy unit; None: the unit is one record
    plan_sha256   of the plan that it was released by; "" for a noisy marginal
    unknown_values
                  attribute name -> category that took the values outside the domain
    person_rule   how the records of one person were bounded, in words; "" if they were not
    run           the name of the run that released it; "" for a noisy marginal
    missing_values
                  attribute name -> category that took missing values
    count_impossible
                  whether records with impossible combinations were counted as they are
    universe      which records were counted, as a condition; "" for all
    neighbours    that the ρ is for, as in a `Budget`
    period        of a panel; "" where records of a person can be any
    exact         the totals that are exact and that neighbours keep, as in a `Budget`
    unit_noun     the word for the privacy unit; "" for the usual one, as in a `Budget`
    distinct      the column whose distinct values were counted, as in a `Budget`; "" for none
    positions     SHA-256 of the file with the positions of columns, for records of fixed width; ""
                  for other records
    encoding      that was named for the records; "" for none, or for UTF-8

    Raises `BudgetError` for a ρ or a number of records that is not positive.
    """

    name: str
    sha256: str
    rho: Fraction | None
    max_records_per_person: int | None = None
    plan_sha256: str = ""
    unknown_values: Mapping[str, str] = field(default_factory=dict)
    person_rule: str = ""
    run: str = ""
    missing_values: Mapping[str, str] = field(default_factory=dict)
    count_impossible: bool = False
    universe: str = ""
    neighbours: str = ADD_REMOVE
    period: str = ""
    exact: tuple[tuple[str, ...], ...] = ()
    unit_noun: str = ""
    distinct: str = ""
    positions: str = ""
    encoding: str = ""

    def __post_init__(self) -> None:
        Budget(
            rho=1 if self.rho is None else self.rho,
            max_records_per_person=self.max_records_per_person,
            neighbours=self.neighbours,
            period=self.period or None,
            exact=self.exact,
            unit_noun=self.unit_noun or None,
            distinct=self.distinct or None,
        )

    @classmethod
    def of(cls, release: PartRelease[Any]) -> "MeasurementSource":
        """A release, of which a part is given; the cost is that of all of it."""
        manifest = release.manifest
        return cls(
            name=release.home.resolve().name,
            sha256=manifest_sha256(release.home),
            rho=Fraction(manifest["rho"]),
            max_records_per_person=manifest["max_records_per_person"],
            plan_sha256=manifest["plan_sha256"],
            unknown_values=release.manifest["unknown_values"],
            person_rule=release.manifest["records_per_person"],
            run=release.manifest["run"],
            missing_values=manifest.get("missing_values", {}),
            count_impossible=manifest.get("count_impossible", False),
            universe=manifest.get("universe", ""),
            neighbours=manifest.get("neighbours", ADD_REMOVE),
            period=manifest.get("period", ""),
            exact=tuple(map(tuple, manifest.get("exact_totals", ()))),
            unit_noun=manifest.get("unit_noun", ""),
            distinct=manifest.get("count_distinct", ""),
            positions=manifest.get("positions", {}).get("sha256", ""),
            encoding=manifest.get("encoding", ""),
        )

    @property
    def unit(self) -> str:
        """The privacy unit, for a sentence."""
        return _unit_cost(
            self.max_records_per_person, self.period, self.unit_noun, self.distinct
        ).unit

    @property
    def is_release(self) -> bool:
        return bool(self.plan_sha256)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a manifest; `from_json` undoes it exactly."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "rho": None if self.rho is None else exact_text(self.rho),
            "privacy_unit": self.unit,
            "max_records_per_person": self.max_records_per_person,
            "plan_sha256": self.plan_sha256,
            "unknown_values": dict(self.unknown_values),
            "records_per_person": self.person_rule,
            "run": self.run,
            **({"missing_values": dict(self.missing_values)} if self.missing_values else {}),
            **({"count_impossible": True} if self.count_impossible else {}),
            **({"universe": self.universe} if self.universe else {}),
            **({"neighbours": self.neighbours} if self.neighbours != ADD_REMOVE else {}),
            **({"period": self.period} if self.period else {}),
            **({"exact_totals": [list(one) for one in self.exact]} if self.exact else {}),
            **({"unit_noun": self.unit_noun} if self.unit_noun else {}),
            **({"count_distinct": self.distinct} if self.distinct else {}),
            **({"positions": self.positions} if self.positions else {}),
            **({"encoding": self.encoding} if self.encoding else {}),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "MeasurementSource":
        """Raises `KeyError`, `TypeError` or `RpexploreError` for what `to_json` does not write."""
        rho, unknown_values = content["rho"], dict(content["unknown_values"])
        missing_values = dict(content.get("missing_values", {}))
        return cls(
            text_of(content, "name"),
            text_of(content, "sha256"),
            None if rho is None else positive_exact(content, "rho"),
            content["max_records_per_person"],
            text_of(content, "plan_sha256"),
            {name: text_of(unknown_values, name) for name in unknown_values},
            text_of(content, "records_per_person"),
            text_of(content, "run"),
            {name: text_of(missing_values, name) for name in missing_values},
            count_impossible="count_impossible" in content,
            universe=text_of(content, "universe") if "universe" in content else "",
            neighbours=text_of(content, "neighbours") if "neighbours" in content else ADD_REMOVE,
            period=text_of(content, "period") if "period" in content else "",
            exact=tuple(map(tuple, content.get("exact_totals", ()))),
            unit_noun=text_of(content, "unit_noun") if "unit_noun" in content else "",
            distinct=text_of(content, "count_distinct") if "count_distinct" in content else "",
            positions=text_of(content, "positions") if "positions" in content else "",
            encoding=text_of(content, "encoding") if "encoding" in content else "",
        )


def sources_of(results: PartReader) -> Sequence[MeasurementSource]:
    """What results were made of: a release is a source itself."""
    return results.made_of or [MeasurementSource.of(results)]  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Spent:
    """What several sources spent together, exact, for one privacy unit.

    rho          the sum of what is known of it
    unit         the privacy unit: the one that asks the most, a person with the most records
    max_records_per_person
                 of it; None if it is one record
    neighbours   of all sources, and the exact totals that these keep
    unit_noun    the word for it; "" for the usual one
    rhos         what each source adds to it; None where nobody stated it
    """

    rho: Fraction
    unit: str
    max_records_per_person: int | None
    rhos: tuple[Fraction | None, ...]
    neighbours: str = ADD_REMOVE
    exact: tuple[tuple[str, ...], ...] = ()
    unit_noun: str = ""

    @property
    def is_known(self) -> bool:
        """Whether all of it is; else it is at least that much."""
        return None not in self.rhos


def spent(sources: Sequence[MeasurementSource]) -> Spent:
    """What was spent on all sources together.

    A source whose unit is one record counts m² times as much for a person with m records, as one
    that protects persons with fewer does.
    """
    known = [source for source in sources if source.rho is not None]
    limits = [source.max_records_per_person for source in known if source.max_records_per_person]
    most = max(limits, default=None)
    noun = next((one.unit_noun for one in sources if one.max_records_per_person == most), "")
    # The period is one for all, and so is what is counted: see `refuse_unlike`.
    distinct = next((one.distinct for one in sources if one.distinct), "")
    common = _unit_cost(most, sources[0].period, noun, distinct)
    rhos = []
    for source in sources:
        factor = _unit_cost(source.max_records_per_person).records_factor
        rhos.append(None if source.rho is None else source.rho * common.records_factor / factor)
    total = sum((rho for rho in rhos if rho is not None), Fraction(0))
    of_all = sources[0]
    return Spent(total, common.unit, most, tuple(rhos), of_all.neighbours, of_all.exact, noun)


def facts_of_sources(sources: Sequence[MeasurementSource]) -> dict[str, Any]:
    """What manifests say in numbers of what tables were made of, and what that spent."""
    total = spent(sources)
    return {
        "rho": exact_text(total.rho),
        "rho_is_known": total.is_known,
        "max_records_per_person": total.max_records_per_person,
        "sources": [source.to_json() for source in sources],
    }


def facts_as_worded(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest must say in numbers to agree with its sources, in its own words.

    Raises what `MeasurementSource.from_json` does.
    """
    sources = [MeasurementSource.from_json(source) for source in manifest["sources"]]
    worded = [
        {**source.to_json(), "privacy_unit": text_of(content, "privacy_unit")}
        for source, content in zip(sources, manifest["sources"], strict=True)
    ]
    return {**facts_of_sources(sources), "sources": worded}


def describe_sources(sources: Sequence[MeasurementSource]) -> str:
    """ "2 releases and 1 noisy marginal"."""
    releases = sum(source.is_release for source in sources)
    counts = [(releases, "release"), (len(sources) - releases, "noisy marginal")]
    return " and ".join(plural(count, noun) for count, noun in counts if count)


def label_of_sources(sources: Sequence[MeasurementSource]) -> str:
    """How unbiased figures came about that were computed from some sources."""
    if len(sources) == 1:
        return f"unbiased; from {describe_sources(sources)}"
    return f"unbiased; combined by inverse variance from {describe_sources(sources)}"


def guarantee(sources: Sequence[MeasurementSource], noun: str = "tables") -> str:
    """What holds for everything that was measured for some tables, or what `noun` says."""
    total = spent(sources)
    start = (
        f"These {noun} were computed from {describe_sources(sources)}; computing them spent "
        "nothing more. "
    )
    unknown = [source for source in sources if source.rho is None]
    if len(unknown) == len(sources):
        return f"{start}What was spent on them is not known, because nobody stated it."
    amount = rho_text(total.rho)
    if unknown:
        return (
            f"{start}What was measured for them spent at least {amount} for {total.unit}. "
            f"Nobody stated what {describe_sources(unknown)} spent, so the total is not "
            "known and nothing about ε and δ follows."
        )
    parts = [rounded(rho, 6, "up") for rho in total.rhos if rho is not None]
    summed = converted = ""
    if 1 < len(parts) <= _MOST_LISTED:
        summed = f", the sum of what each spent ({' + '.join(parts)})"
    if len({source.unit for source in sources}) > 1:
        converted = " What was released for another privacy unit is counted here for this one."
    change = change_of(total.neighbours, total.max_records_per_person, total.exact)
    epsilons = epsilon_texts(lambda delta: epsilon_from_rho(total.rho, delta), None)
    return (
        f"{start}What was measured for them is ρ-zCDP, all together, with {amount} for "
        f"{total.unit}{summed}: {change} changes the distribution of all these "
        "measurements by no more than that. It follows from ρ, whatever the noise, that they are "
        f"(ε, δ)-differentially private with {', '.join(epsilons)}.{converted} Anything else that "
        "was released from the same records comes on top."
    )


def refuse_unlike(sources: Sequence[MeasurementSource]) -> None:
    """Raise `ReleaseError` for a source that is there twice, or records that were counted unlike.

    Values outside the domain must have gone into the same category everywhere, and the records of
    one person been bounded in the same way: else a ρ for one unit says nothing about another, too.
    """
    for source in sources[1:]:
        if source.exact or sources[0].exact:
            name = (source if source.exact else sources[0]).name
            raise ReleaseError(
                f"The release {name!r} has exact totals, and what is promised together with others "
                "depends on all of theirs; releases with exact totals are not combined. Ask for "
                "all tables in one plan."
            )
        panels = [
            (one.period, one.max_records_per_person if one.period else None)
            for one in (sources[0], source)
        ]
        if panels[0] != panels[1]:
            raise ReleaseError(
                f"{sources[0].name!r} protects {sources[0].unit}, and {source.name!r} "
                f"{source.unit}; combine releases of panels only with those of the same panel."
            )
        if source.distinct != sources[0].distinct:
            raise ReleaseError(
                f"{sources[0].name!r} protects {sources[0].unit}, and {source.name!r} "
                f"{source.unit}; combine only releases that count the same."
            )
        if source.neighbours != sources[0].neighbours:
            raise ReleaseError(
                f"The ρ of {sources[0].name!r} is for neighbours of the kind "
                f"{sources[0].neighbours!r} and that of {source.name!r} for {source.neighbours!r}, "
                "and the two do not add up; combine only releases of one kind of neighbours."
            )
    releases = [source for source in sources if source.is_release]
    for source in releases[1:]:
        if source.universe != releases[0].universe:
            raise ReleaseError(
                f"{releases[0].name!r} counts {releases[0].universe or 'all records'} and "
                f"{source.name!r} counts {source.universe or 'all records'}; combine only releases "
                "of one universe."
            )
        if source.person_rule != releases[0].person_rule:
            raise ReleaseError(
                f"The records of one person were bounded in different ways for "
                f"{releases[0].name!r} ({releases[0].person_rule or 'not at all'}) and "
                f"{source.name!r} ({source.person_rule or 'not at all'}), and the two may count "
                "different records; combine only releases with one rule for persons."
            )
    _refuse_read_unlike(releases)
    known: dict[str, MeasurementSource] = {}
    categories: dict[tuple[str, str], tuple[str, MeasurementSource]] = {}
    for source in sources:
        # By run: two runs can draw the same.
        twin = known.setdefault(source.run or source.sha256, source)
        if twin is not source:
            raise ReleaseError(
                f"{source.name!r} holds the same measurements as {twin.name!r}, and counting them "
                "twice would claim more accuracy than there is; name it once."
            )
        takers = [("Out-of-codebook", *pair) for pair in source.unknown_values.items()]
        takers += [("Missing", *pair) for pair in source.missing_values.items()]
        for what, name, value in takers:
            before, first = categories.setdefault((what, name), (value, source))
            if before != value:
                raise ReleaseError(
                    f"{what} values of {name!r} were counted as {before!r} in "
                    f"{first.name!r} and as {value!r} in {source.name!r}, and the two do not count "
                    "the same; combine only releases that treat such values alike."
                )


def _refuse_read_unlike(releases: Sequence[MeasurementSource]) -> None:
    """Raise `ReleaseError` for texts that were read in two encodings, or by two files of positions.

    Then a text of the same record may have been counted as two values. The same records can also
    lie in a file of fixed width and in another one that has no positions.
    """
    fixed = [source for source in releases if source.positions]
    for source in fixed[1:]:
        if source.positions != fixed[0].positions:
            raise ReleaseError(
                f"The columns of {fixed[0].name!r} and of {source.name!r} were read by files of "
                f"positions that differ (SHA-256 {fixed[0].positions[:12]}… and "
                f"{source.positions[:12]}…), and the two may count other columns; combine only "
                "releases that were read by the same file."
            )
    for source in releases[1:]:
        if source.encoding != releases[0].encoding:
            raise ReleaseError(
                f"The records of {releases[0].name!r} were read as texts in "
                f"{releases[0].encoding or 'UTF-8'} and those of {source.name!r} in "
                f"{source.encoding or 'UTF-8'}, and the two may count one text as two values; "
                "combine only releases that were read in one encoding."
            )


def _unit_cost(
    max_records_per_person: int | None, period: str = "", unit_noun: str = "", distinct: str = ""
) -> Budget:
    """A ρ of 1 for a privacy unit: budgets know what it is called, and what a record costs."""
    return Budget(
        rho=1,
        max_records_per_person=max_records_per_person,
        period=period or None,
        unit_noun=unit_noun or None,
        distinct=distinct or None,
    )
