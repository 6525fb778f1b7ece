"""Release plan: what plans of tables and plans of queries have in common. No records."""

import hashlib
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Self

from rpexplore.common.concurrency import collection_paused
from rpexplore.common.exact_numbers import Exact, float_at_least
from rpexplore.common.files import file_bytes, write_whole
from rpexplore.common.formatting import plural, rounded
from rpexplore.common.json_fields import SEAL, check_format, dumps, loads, refusing, text_of
from rpexplore.domain.domain import Domain
from rpexplore.errors import ContradictionError, PlanError
from rpexplore.planning.certificate import Certificate
from rpexplore.privacy import conversions
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text

FORMAT_VERSION = 1  # of plan files
_GET_AGAIN = "Get the plan again from whoever made it, or plan anew."


class ReleasePlan(ABC):
    """A plan that a release can be run by: a frozen value, one JSON file.

    A kind of plan is a subclass, listed in `queries.plan_kinds`.

    kind                "tables", "areas", "counts" (own counts) or "rounds" (adaptive)
    file_format         the "format" of its files
    noun                what people call it: "plan", "query plan"
    item                what it plans many of: "table", "query"
    released_item       what a release holds for each: "noisy table", "noisy answer"
    drawn_as            how a release is drawn, and that costs hold for that, to begin a sentence
    accuracy_statement  what a release promises of its accuracy, as a sentence
    has_labels_in_csv   whether a release may have CSV files with labels of the codebook
    """

    kind: ClassVar[str]
    file_format: ClassVar[str]
    noun: ClassVar[str] = "plan"
    item: ClassVar[str]
    released_item: ClassVar[str]
    drawn_as: ClassVar[str] = (
        "The noise is discrete Gaussian, so these hold for the numbers as they are drawn"
    )
    accuracy_statement: ClassVar[str]
    has_labels_in_csv: ClassVar[bool] = False
    _text: ClassVar[Callable[[Any], str]]
    _fields_of_json: ClassVar[Callable[[dict[str, Any]], dict[str, Any]]]  # raises `PlanError`

    budget: Budget
    exact_privacy_cost: Fraction  # of the privacy unit, at most the budget's
    version: str

    # ---- what it is about

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The attributes, all of them, and their values."""

    @property
    @abstractmethod
    def attribute_indices(self) -> tuple[int, ...]:
        """Which attributes the records must have as columns."""

    @property
    @abstractmethod
    def n_items(self) -> int:
        """How many tables, or queries, it plans."""

    @property
    def kind_text(self) -> str:
        """What kind of plan it is, for a sentence: "a query plan", "an adaptive plan"."""
        return _with_article(self.noun)

    @property
    def contents(self) -> str:
        """What a release by it holds: "7 noisy tables", "1 noisy answer"."""
        return plural(self.n_items, self.released_item)

    @property
    def full_contents(self) -> str:
        """`contents` with how much there is in them: "7 noisy tables with 480 cells"."""
        return self.contents

    # ---- what it guarantees

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
        return self.rho / self.budget.records_factor

    def epsilon(self, delta: Exact) -> float:
        """The smallest proven ε for this δ, rounded up (CKS Prop. 7)."""
        return conversions.epsilon_from_rho(self.rho, delta)

    @property
    def epsilon_texts(self) -> list[str]:
        """The (ε, δ) that follow, as text, ε rounded up: the budget's own δ first."""
        return conversions.epsilon_texts(self.rho, self.budget.stated_delta)

    @property
    def privacy_lines(self) -> list[str]:
        """Whom the plan protects and how much, as two lines of its summary."""
        return [
            f"  Protects   {self.budget.unit}; neighbours add or remove it",
            f"  Privacy    {rounded(self.rho, 6, 'up')}-zCDP "
            f"(privacy cost {rounded(self.exact_privacy_cost, 6, 'up')}), so "
            f"{' and '.join(self.epsilon_texts[:2])}",
        ]

    @property
    def guarantee(self) -> str:
        """What the plan guarantees, in sentences."""
        return (
            f"A release by this plan is ρ-zCDP with {rho_text(self.rho)} for "
            f"{self.budget.unit}: adding or removing it changes the distribution of everything "
            "that is released by no more than that. It follows that the release is "
            f"(ε, δ)-differentially private with {', '.join(self.epsilon_texts)}. "
            f"{self.drawn_as}, not only for an ideal. "
            f"{self.accuracy_statement}"
        )

    def __repr__(self) -> str:
        items = plural(self.n_items, self.item)
        return f"<{type(self).__name__} for {items}, {rho_text(self.rho)}>"

    # ---- files

    @property
    def file_head(self) -> dict[str, Any]:
        """The first fields of its file: what kind of file it is, and the codebook."""
        return {
            "format": self.file_format,
            "format_version": FORMAT_VERSION,
            "library_version": self.version,
            "domain": self.domain.to_schema(),
        }

    @cached_property
    def text(self) -> str:
        """The canonical JSON text, described in `schemas`."""
        return type(self)._text(self)

    @property
    def companions(self) -> Mapping[str, bytes]:
        """The files that its text names, which lie beside the plan file: name -> contents."""
        return {}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the canonical text, in hexadecimal: the plan's name in ledger and manifest."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the plan file; complete or not at all."""
        try:
            write_whole(path, self.text)
        except OSError as error:
            raise PlanError(
                f"The {self.noun} cannot be written to {str(path)!r} ({error.strerror}); choose a "
                "file in a folder that exists and can be written to."
            ) from None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan file, as `save` wrote it. Raises `PlanError` for any other."""
        path = Path(path)
        return cls.parse(plan_text(path, cls.noun), path.name, folder=path.parent)

    @classmethod
    def parse(
        cls,
        text: str,
        source: str = "The text",
        *,
        canonical: bool = True,
        folder: Path | None = None,
    ) -> Self:
        """The plan that a text holds; `PlanError` if it is not a usable plan of this kind.

        source: the file's name, for errors. canonical: whether to refuse a text that is not byte
        for byte what `save` writes: its SHA-256 is not the plan's. folder: where the files lie that
        the text names, of a kind that has such
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
    def _read(cls, text: str, source: str, folder: Path | None) -> tuple[Self, str]:
        """The plan that a text holds, in whichever layout, and its seal."""
        with refusing(PlanError, f"{source} is not {_with_article(cls.noun)} file"):
            content = loads(text)
            check_format(content, cls.file_format, FORMAT_VERSION, cls.noun)
        try:
            with refusing(ContradictionError, f"{source} cannot be used"):
                return cls(**cls._fields(content, folder)), text_of(content, SEAL)
        except ContradictionError as error:
            raise ContradictionError(f"{error} {_GET_AGAIN}") from None
        except OSError as problem:
            raise PlanError(
                f"{source} needs the file {Path(problem.filename).name} beside it, which cannot be "
                f"read ({problem.strerror}); put it there from where the plan was made or released."
            ) from None

    @classmethod
    def _fields(cls, content: dict[str, Any], folder: Path | None) -> dict[str, Any]:
        """The fields of the plan that a file in a folder holds; raises what `refusing` takes.

        And `OSError` for a file beside it that cannot be read.
        """
        return cls._fields_of_json(content)


class CertifiedPlan(ReleasePlan):
    """A plan whose accuracy is known beforehand, and proven to be near the best."""

    certificate: Certificate

    @property
    def proven(self) -> str:
        """How good the plan is proven to be, as a sentence."""
        return self.certificate.sentence()


def plan_text(path: str | Path, noun: str = "plan") -> str:
    """What a plan file holds; raises `PlanError`, which calls it by the noun, if it is no text."""
    if Path(path).is_dir():
        inside = Path(path) / "plan.json"
        named = f"that in it, {str(inside)!r}" if inside.is_file() else "a file"
        raise PlanError(f"The {noun} must be a file, got the folder {str(path)!r}; name {named}.")
    try:
        return file_bytes(path, f"The {noun} {str(path)!r}", PlanError).decode()
    except UnicodeDecodeError:
        raise PlanError(
            f"{Path(path).name} is not {_with_article(noun)} file: it is not UTF-8."
        ) from None


def _with_article(noun: str) -> str:
    return f"{'an' if noun.startswith('a') else 'a'} {noun}"
