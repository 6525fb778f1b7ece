"""Plan: the boundary between planning and release. A frozen value, one JSON file, no records."""

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpexplore.common.files import file_bytes, write_whole
from rpexplore.common.json_fields import (
    SEAL,
    FieldError,
    canonical_text,
    check_format,
    check_keys,
    dumps,
    list_of,
    loads,
    positive_exact,
    refusing,
    text_of,
)
from rpexplore.common.numbers import Exact, exact_fraction, exact_text, float_at_least, shown
from rpexplore.common.processes import collection_paused
from rpexplore.common.text import joined, rounded
from rpexplore.domain.domain import Domain
from rpexplore.domain.universe import Universe
from rpexplore.errors import ContradictionError, PlanError
from rpexplore.planning.held_totals import refuse_unheld
from rpexplore.planning.part_plan import TITLES, Certificate, PartPlan
from rpexplore.planning.part_shares import (
    SHARE_UNIT,
    certificate_of_parts,
    objective_of,
    refuse_indistinct,
    refuse_unreplaced,
    refuse_unweighted,
)
from rpexplore.planning.stated_forecast import StatedForecast
from rpexplore.privacy import conversions
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.privacy.discrete_noise import DiscreteNoise, GaussianClaim
from rpexplore.workload.universe import universe_of

if TYPE_CHECKING:
    import pandas as pd


# A plan has parts, each at most once: `tables`, `areas` (tables in areas), `counts` (own counts)
# and `rounds` (adaptive tables). They share one budget; what the plan costs is the sum of what its
# parts cost, and the guarantee is about everything that a release by it publishes.
#
# The file is one canonical JSON text, so that its SHA-256 is the plan's name: UTF-8, no spaces, one
# key or row a line, so that files can be compared by line. Exact numbers are texts ("12.5", "1/3");
# floats are the shortest decimals that give them back. A text with the same content in another
# layout is read only to be written anew. The tree of areas lies beside it, in files that it names.


FORMAT, FORMAT_VERSION = "rpexplore-plan", 2

# Kind -> the class of such parts, in the order in which a plan has them. They are loaded when they
# are needed: a plan of tables needs nothing of areas.
PARTS = {
    "tables": "rpexplore.planning.table_plan.TablePlan",
    "areas": "rpexplore.planning.areas.area_plan.AreaPlan",
    "counts": "rpexplore.planning.counts.QueryPlan",
    "rounds": "rpexplore.planning.adaptive.AdaptivePlan",
}

_MOST_SHORT = 1000  # the denominator of a share that is shown as a fraction
_KEYS = ("format", "format_version", "library_version", "budget", "privacy_cost", "parts", SEAL)
_MOST_BYTES = 1_000_000_000  # of a plan file
_FORECAST = "forecast"  # only of plans that keep one
_UNIVERSE = "universe"  # only of plans that are not of all records
_PRODUCT_UNITS = "product_units"  # only of plans that round products of amounts and weights
_NOT_IN_ALL = (_PRODUCT_UNITS, _UNIVERSE, _FORECAST)
_GET_AGAIN = "Get the plan again from whoever made it, or plan anew."
# Those of version 1, of which each kind of part had its own.
_FORMAT_OF_PLANS = re.compile(rb'"format"\s*:\s*"rpexplore-(?:(?:query|area|adaptive)-)?plan"')
_OLD_FORMATS = ("rpexplore-plan", "rpexplore-query-plan", "rpexplore-area-plan",
                "rpexplore-adaptive-plan")  # fmt: skip
LAST_OF_VERSION_1 = "0.1"  # of this library: it reads files and folders of format version 1


def part_class(kind: str) -> type[PartPlan]:
    """The class of the parts of a kind."""
    module, name = PARTS[kind].rsplit(".", 1)
    return getattr(import_module(module), name)


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What a release publishes, with how much noise, and what that guarantees. No records.

    parts    each planned within its share of the budget, in the order of `PARTS`
    budget   the most that all of it may cost
    version  of the library that made the plan
    forecast what was forecast of its tables, if the plan keeps that
    universe which records are counted; None: all

    Make one with `rpexplore.plan` or `Plan.load`.
    """

    parts: tuple[PartPlan, ...]
    budget: Budget
    version: str
    forecast: StatedForecast | None = None
    universe: Universe | None = None

    def __post_init__(self) -> None:
        kinds = [part.kind for part in self.parts]
        if not kinds or kinds != [kind for kind in PARTS if kind in kinds]:
            raise PlanError(
                f"A plan has some of the parts {', '.join(PARTS)}, each once and in this order, "
                f"got {', '.join(kinds) or 'none'}."
            )
        tables, areas, counts = self.part("tables"), self.part("areas"), self.part("counts")
        refuse_unweighted(
            None if tables is None else tables.workload,
            None if areas is None else areas.workload.tables,
            None if counts is None else counts.queries,
            kinds,
        )
        refuse_unreplaced(self.budget, kinds)
        refuse_indistinct(self.budget, self.domain, self.columns)
        for part in self.parts:
            unit, whole = (
                (one.full_unit, one.period, one.exact) for one in (part.budget, self.budget)
            )
            if unit != whole:
                raise PlanError(
                    f"The {part.noun} protects {part.budget.full_unit}, and the whole "
                    f"{self.budget.full_unit}; all parts must protect the same."
                )
        if sum(part.budget.privacy_cost for part in self.parts) > self.budget.privacy_cost:
            raise PlanError(
                "The budgets of the parts are more than that of the plan; make them sum to it."
            )
        _ = self.domain  # the parts must be about the same attributes
        if self.forecast is not None:
            tables = self.part("tables")
            if tables is None or len(self.forecast.tables) not in (0, tables.n_items):
                raise PlanError("The forecast must be of the tables of the plan.")

    @classmethod
    def of(cls, plan: "Plan | PartPlan") -> "Plan":
        """The plan, or the one that has this part only."""
        if isinstance(plan, PartPlan):
            return plan.alone
        if not isinstance(plan, Plan):
            raise PlanError(
                f"A plan must be what rpexplore.plan or Plan.load returns, got "
                f"{type(plan).__name__}."
            )
        return plan

    # ---- what it is about

    def part(self, kind: str) -> Any:
        """The part of a kind; None if it has none."""
        return next((part for part in self.parts if part.kind == kind), None)

    @cached_property
    def domain(self) -> Domain:
        """The attributes of all parts, each once, and their values.

        Raises `PlanError` for parts that do not agree about an attribute.
        """
        if len(self.parts) == 1:
            return self.parts[0].domain
        attributes, impossible = {}, {}
        for part in self.parts:
            for attribute in part.domain:
                known = attributes.setdefault(attribute.name, attribute)
                if known.values != attribute.values:
                    raise PlanError(
                        f"The parts of the plan do not agree about the values of "
                        f"{attribute.name!r}; plan them from one codebook."
                    )
                levels = {level.name: level for level in known.all_levels}
                if any(levels.get(one.name, one) != one for one in attribute.all_levels):
                    raise PlanError(
                        f"The parts of the plan do not agree about the levels of "
                        f"{attribute.name!r}; plan them from one codebook."
                    )
            impossible |= dict.fromkeys(part.domain.impossible)
        levels_last = sorted(attributes.values(), key=lambda attribute: bool(attribute.of))
        return Domain(tuple(levels_last), tuple(impossible))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that records must have, each once."""
        of_universe = () if self.universe is None else self.universe.columns
        of_parts = (name for part in self.parts for name in part.columns)
        return tuple(dict.fromkeys((*of_parts, *of_universe)))

    def within(self, text: str) -> "Plan":
        """The same plan of the records that fulfil a condition; "": of all.

        Raises `WorkloadError` for a text that is none.
        """
        return replace(self, universe=universe_of(text, self.domain) if text else None)

    @cached_property
    def product_units(self) -> list[dict[str, Any]]:
        """Which amounts and weights it multiplies, and how many products of steps count as one.

        Those of an `Amounts.product_unit` above 1.
        """
        units = {
            (part.domain.names[one], part.domain.names[other]): unit
            for part in self.parts
            for one, other in part.products
            if (unit := part.domain.product_unit((one, other))) > 1
        }
        return [
            {"amounts": one, "weights": other, "unit": unit}
            for (one, other), unit in sorted(units.items())
        ]

    @property
    def kind_text(self) -> str:
        """What kind of plan it is, for a sentence: "a query plan", "a plan of tables and …"."""
        if len(self.parts) == 1:
            noun = self.parts[0].noun
            return f"{'an' if noun.startswith('a') else 'a'} {noun}"
        return f"a plan of {joined([TITLES[part.kind].lower() for part in self.parts])}"

    @property
    def n_items(self) -> int:
        """How many tables and queries it plans."""
        return sum(part.n_items for part in self.parts)

    @property
    def asked(self) -> str:
        """What it plans: "4 tables, 5 tables in areas and 1 query"."""
        return joined([part.asked for part in self.parts])

    @property
    def contents(self) -> str:
        """What a release by it holds: "7 noisy tables and 12 noisy own counts"."""
        return joined([part.contents for part in self.parts])

    @property
    def full_contents(self) -> str:
        """`contents` with how much there is in them: "7 noisy tables with 480 cells"."""
        return joined([part.full_contents for part in self.parts])

    @property
    def has_labels_in_csv(self) -> bool:
        """Whether a release may have CSV files with labels of the codebook."""
        return any(part.has_labels_in_csv for part in self.parts)

    # ---- what it guarantees

    @cached_property
    def exact_privacy_cost(self) -> Fraction:
        """Privacy cost of the privacy unit: the sum of that of its parts, ≤ the budget's."""
        return sum((part.exact_privacy_cost for part in self.parts), Fraction())

    @property
    def privacy_cost(self) -> float:
        """Privacy cost of the privacy unit (2ρ), rounded up."""
        return float_at_least(self.exact_privacy_cost)

    @property
    def rho(self) -> Fraction:
        """The guarantee: the release is ρ-zCDP for the privacy unit, with this exact ρ."""
        return conversions.rho_from_privacy_cost(self.exact_privacy_cost)

    @property
    def record_rho(self) -> Fraction:
        """ρ for one record, what the ledger books: ρ of the unit over m²."""
        return sum((part.record_rho for part in self.parts), Fraction())

    @property
    def shares(self) -> dict[str, Fraction]:
        """Kind -> the part's share of the cost of all parts, to 12 decimals; their sum is 1.

        As short fractions where these are as near. The exact costs are those of the parts
        (`exact_privacy_cost`), sums of rounded ones.
        """
        total = self.exact_privacy_cost
        shares = {part.kind: part.exact_privacy_cost / total for part in self.parts}
        short = {kind: share.limit_denominator(_MOST_SHORT) for kind, share in shares.items()}
        is_near = all(
            abs(short[kind] - share) < Fraction(1, SHARE_UNIT) for kind, share in shares.items()
        )
        if is_near and sum(short.values()) == 1:
            return short
        units = {kind: max(round(share * SHARE_UNIT), 1) for kind, share in shares.items()}
        units[max(units, key=units.__getitem__)] += SHARE_UNIT - sum(units.values())
        return {kind: Fraction(unit, SHARE_UNIT) for kind, unit in units.items()}

    def epsilon(self, delta: Exact) -> float:
        """The smallest proven ε for this δ, rounded up: by the noise itself, or by ρ."""
        return self._epsilons(exact_fraction(delta, "delta"))

    @cached_property
    def _epsilons(self) -> Callable[[Fraction], float]:
        if self.noise is None:
            return lambda delta: conversions.epsilon_from_rho(self.rho, delta)
        return self.noise.epsilon

    @cached_property
    def noise(self) -> DiscreteNoise | None:
        """The noise of all parts, for (ε, δ); None where later noise depends on what was drawn."""
        noises = [part.noise for part in self.parts]
        known = [noise for noise in noises if noise is not None]
        return DiscreteNoise.joined(known) if len(known) == len(noises) else None

    @property
    def epsilon_texts(self) -> list[str]:
        """The (ε, δ) that follow, as text, ε rounded up: the budget's own δ first."""
        return conversions.epsilon_texts(self.epsilon, self.budget.stated_delta)

    @property
    def epsilon_text(self) -> str:
        """The (ε, δ) at the stated δ, or the usual one: "ε = 1 at δ = 1e-6"."""
        delta = self.budget.stated_delta or Fraction(conversions.USUAL_DELTAS[0])
        return conversions.epsilon_at_delta(self.epsilon(delta), delta)

    @property
    def amount_text(self) -> str:
        """What it costs the privacy unit: "ρ = 0.02802 (ε = 1 at δ = 1e-6)"."""
        return f"{rho_text(self.rho, 4)} ({self.epsilon_text})"

    @property
    def privacy_lines(self) -> list[str]:
        """Whom the plan protects and how much, as two lines of its summary."""
        return [
            f"  Protects   {self.budget.unit}; {self.budget.neighbours_text}",
            f"  Privacy    {rounded(self.rho, 6, 'up')}-zCDP "
            f"(privacy cost {rounded(self.exact_privacy_cost, 6, 'up')}), "
            f"{' and '.join(self.epsilon_texts[:2])}",
        ]

    @property
    def gaussian_claim(self) -> GaussianClaim | None:
        """That the noise is nearly Gaussian, where its ε at the stated δ (or the usual one) is from
        that; None where ρ proves as much.
        """
        delta = self.budget.stated_delta or Fraction(conversions.USUAL_DELTAS[0])
        claim = None if self.noise is None else self.noise.claim_at(delta)
        if claim is None or self.epsilon(delta) >= conversions.epsilon_from_rho(self.rho, delta):
            return None
        return claim

    @property
    def _gaussian_text(self) -> str:
        """What (ε, δ) follows from: the start of a sentence that goes on with these."""
        claim = self.gaussian_claim
        if claim is None:
            return "It follows that the release is"
        return (
            f"Up to {rounded(claim.shift, 2, 'up')} of ε and {rounded(claim.excess, 2, 'up')} of δ "
            "(relative), which its whole numbers cost, the release is μ-Gaussian differentially "
            f"private with μ = {rounded(claim.mu, 5, 'up')}. So it is"
        )

    @property
    def guarantee(self) -> str:
        """What the plan guarantees, in sentences."""
        drawn = self.parts[-1].drawn_as  # rounds come last, and say it of noise and selection
        statements = [part.accuracy_statement for part in self.parts]
        if len(self.parts) > 1:
            statements = [
                f"{TITLES[part.kind]}: {text[0].lower()}{text[1:]}"
                for part, text in zip(self.parts, statements, strict=True)
            ]
        counted = "" if self.universe is None else f" {self.universe.sentence}"
        return (
            f"A release by this plan is ρ-zCDP with {rho_text(self.rho)} for "
            f"{self.budget.unit}: {self.budget.change} changes the distribution of everything "
            f"that is released by no more than that.{self.budget.public_text} "
            f"{self._gaussian_text} "
            f"(ε, δ)-differentially private with {', '.join(self.epsilon_texts)}. "
            f"{drawn}, not only for an ideal. "
            f"{' '.join([*statements, *(part.note for part in self.parts if part.note)])}{counted}"
        )

    # ---- what it is worth

    @cached_property
    def certificate(self) -> Certificate | None:
        """How good all parts together are proven to be by the objective; None where nothing is.

        With several parts it bounds every split of the budget (docs/mathematics.md §18).
        """
        return certificate_of_parts(self.parts, self.budget)

    @property
    def proven(self) -> str:
        """How good the plan is proven to be, as a sentence; "" where nothing is proven."""
        if len(self.parts) == 1:
            return getattr(self.parts[0], "proven", "")
        if self.certificate is None:
            return ""
        loss = objective_of(self.parts)
        each = (part.restriction_for(loss) for part in self.parts)
        restrictions = "; ".join(filter(None, each))
        alike = f" ({restrictions})" if restrictions else ""
        return self.certificate.sentence(
            f"that plan each part by itself{alike}", split=", however it is split between the parts"
        )

    @property
    def loss_value(self) -> float | None:
        """The loss of all parts together; `certificate` bounds how far it is from the best."""
        return None if self.certificate is None else self.certificate.loss_value

    @property
    def tables(self) -> "pd.DataFrame":
        """What `accuracy` gives."""
        return self.accuracy()

    def accuracy(self) -> "pd.DataFrame":
        """One row a table (and level) or count of every part: cells, standard errors, targets."""
        import pandas as pd  # half of the time that importing this package would take

        frames = [part.accuracy() for part in self.parts]
        return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)

    def __str__(self) -> str:
        """The plan in some lines, for a terminal."""
        texts = (f"{self.part_title(part)}\n{part}".lstrip("\n") for part in self.parts)
        return "\n\n".join(filter(None, (self.summary, *texts)))

    @property
    def summary(self) -> str:
        """What is promised for all parts together, in a few lines; "" for a single part of all."""
        counted = [] if self.universe is None else [f"  Universe   {self.universe.text}"]
        if len(self.parts) == 1:
            return "\n".join(["Records that are counted", *counted]) if counted else ""
        lines = [f"Plan for {self.asked}", *counted]
        lines += self.privacy_lines
        if self.proven:
            lines.append(f"  Proven     {self.proven}")
        return "\n".join(lines)

    def part_title(self, part: PartPlan) -> str:
        """What stands above a part: "Own counts, 22.7 % of the budget"; "" for a single one."""
        if len(self.parts) == 1:
            return ""
        return f"{TITLES[part.kind]}, {rounded(100 * self.shares[part.kind], 3)} % of the budget"

    def __repr__(self) -> str:
        return f"<Plan for {self.asked}, {rho_text(self.rho)}>"

    # ---- files

    @cached_property
    def text(self) -> str:
        """The canonical JSON text of its file (docs/plan-files.md)."""
        head = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "library_version": self.version,
            "budget": self.budget.to_json(),
            "privacy_cost": exact_text(self.exact_privacy_cost),
        }
        if self.product_units:
            head[_PRODUCT_UNITS] = self.product_units
        if self.universe is not None:
            head[_UNIVERSE] = self.universe.text
        if self.forecast is not None:
            head[_FORECAST] = self.forecast.to_json()
        return canonical_text(head, {"parts": [part.to_text() for part in self.parts]})

    @property
    def companions(self) -> Mapping[str, bytes]:
        """The files that its text names, which lie beside the plan file: name -> contents."""
        return {name: file for part in self.parts for name, file in part.companions.items()}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the canonical text, in hexadecimal: the plan's name in ledger and manifest."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def booked_sha256(self) -> str:
        """SHA-256 of the plan by which a run of this one is booked and approved.

        Its own; of the plan of a rest, that of its first plan.
        """
        return self.booked.sha256

    @property
    def booked(self) -> "Plan":
        """The plan by which a run of this one is booked: itself; of a rest, its first plan."""
        tables = self.part("tables")
        return self if tables is None or tables.first is None else tables.first

    def save(self, path: str | Path) -> None:
        """Write the plan file, and beside it the files that it names; each complete or not at all.

        Raises `PlanError` for one that cannot be written.
        """
        folder = Path(path).parent
        for file, content in {**{folder / n: c for n, c in self.companions.items()},
                              Path(path): self.text}.items():  # fmt: skip
            try:
                write_whole(file, content)
            except OSError as error:
                raise PlanError(
                    f"The plan cannot be written to {str(file)!r} ({error.strerror}); choose a "
                    "file in a folder that exists and can be written to."
                ) from None

    @classmethod
    def load(cls, path: str | Path, *, canonical: bool = True) -> "Plan":
        """Read a plan file, as `save` wrote it. Raises `PlanError` for any other."""
        path = Path(path)
        if path.is_dir():
            inside = path / "plan.json"
            named = f"that in it, {str(inside)!r}" if inside.is_file() else "a file"
            raise PlanError(f"The plan must be a file, got the folder {str(path)!r}; name {named}.")
        try:
            text = file_bytes(path, f"The plan {str(path)!r}", PlanError, _MOST_BYTES).decode()
        except UnicodeDecodeError:
            raise PlanError(f"{path.name} is not a plan file: it is not UTF-8.") from None
        return cls.parse(text, path.name, canonical=canonical, folder=path.parent)

    @classmethod
    def parse(
        cls,
        text: str,
        source: str = "The text",
        *,
        canonical: bool = True,
        folder: Path | None = None,
    ) -> "Plan":
        """The plan that a text holds; `PlanError` if it is not a usable one.

        source: the file's name, for errors. canonical: whether to refuse a text that is not byte
        for byte what `save` writes: its SHA-256 is not the plan's. folder: where the files lie that
        the text names
        """
        with collection_paused():
            plan, seal = cls._read(text, source, folder)
            is_as_written = text == plan.text
        if not plan.text.endswith(f'"{SEAL}":{dumps(seal)}\n}}\n'):
            raise ContradictionError(
                f"{source} was changed since it was written: its {SEAL} is that of other contents. "
                + _GET_AGAIN
            )
        if canonical and not is_as_written:
            pairs = zip_longest(text.split("\n"), plan.text.split("\n"))
            line = next(line for line, (left, right) in enumerate(pairs, 1) if left != right)
            raise PlanError(
                f"{source} must be byte for byte as rpexplore writes plans, so that its SHA-256 is "
                f"the plan's name, and is not from line {line:,} on; write it anew: rpexplore "
                f"rewrite {shlex.quote(source)} --out FILE."
            )
        return plan

    @classmethod
    def _read(cls, text: str, source: str, folder: Path | None) -> "tuple[Plan, str]":
        """The plan that a text holds, in whichever layout, and its seal."""
        with refusing(PlanError, f"{source} is not a plan file"):
            content = loads(text)
            if _is_of_version_1(content):
                raise FieldError(
                    f"it has plan format version 1, which rpexplore {LAST_OF_VERSION_1} reads, and "
                    f"this library reads version {FORMAT_VERSION}; plan anew."
                )
            check_format(content, FORMAT, FORMAT_VERSION, "plan")
        try:
            with refusing(ContradictionError, f"{source} cannot be used"):
                check_keys(content, (*_KEYS, *(set(_NOT_IN_ALL) & content.keys())), "the plan")
                version = text_of(content, "library_version")
                parts = []
                for part in list_of(content, "parts"):
                    kind = part.get("kind") if isinstance(part, dict) else None
                    if not isinstance(kind, str) or kind not in PARTS:
                        raise PlanError(
                            f'the "kind" of a part must be {joined(list(PARTS), " or ")}, got '
                            f"{shown(repr(kind))}."
                        )
                    parts.append(part_class(kind).of_content(part, version, folder))
                forecast = None
                if _FORECAST in content:
                    forecast = StatedForecast.from_json(content[_FORECAST])
                plan = cls(tuple(parts), Budget.from_json(content["budget"]), version, forecast)
                if _UNIVERSE in content:
                    plan = plan.within(text_of(content, _UNIVERSE))
                    if plan.universe is None:
                        raise PlanError("its universe must be a condition, or left out.")
                if plan.budget.exact:
                    of_parts = [plan.part(kind) for kind in ("tables", "areas")]
                    refuse_unheld(plan.budget, *(one and one.workload for one in of_parts))
                stated = content.get(_PRODUCT_UNITS)
                if stated != plan.product_units and stated is not None:
                    raise PlanError(
                        "its product_units must be those of the amounts and weights that it "
                        "multiplies."
                    )
                if positive_exact(content, "privacy_cost") != plan.exact_privacy_cost:
                    raise PlanError("its privacy_cost must be the sum of that of its parts.")
                seal = text_of(content, SEAL)
        except ContradictionError as error:
            raise ContradictionError(f"{error} {_GET_AGAIN}") from None
        except OSError as problem:
            raise PlanError(
                f"{source} needs the file {Path(problem.filename).name} beside it, which cannot be "
                f"read ({problem.strerror}); put it there from where the plan was made or released."
            ) from None
        if plan.product_units and stated is None:
            raise PlanError(
                f"{source} is from when amounts times weights were not rounded record by record, "
                "so that its weighted sums would be others by now; plan anew."
            )
        return plan, seal


def is_plan_of_version_1(path: str | Path) -> bool:
    """Whether a file is a plan of format version 1; not if it cannot be read."""
    try:
        return _is_of_version_1(loads(Path(path).read_text("utf-8")))
    except (OSError, ValueError, FieldError):
        return False


def _is_of_version_1(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and type(content.get("format_version")) is int
        and content["format_version"] == 1
        and content.get("format") in _OLD_FORMATS
    )


def load_plan(path: str | Path, *, canonical: bool = True) -> Plan:
    """The plan of a file; see `Plan.load`."""
    return Plan.load(path, canonical=canonical)


def is_plan_file(path: str | Path) -> bool:
    """Whether a file is a plan, or names itself one and is broken JSON.

    Raises `OSError` if it cannot be read.
    """
    with Path(path).open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    try:
        fields = loads(content.decode())
    except (FieldError, UnicodeDecodeError):
        return _FORMAT_OF_PLANS.search(content) is not None
    return isinstance(fields, dict) and fields.get("format") in _OLD_FORMATS
