"""What a run is told, and what a dry run tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rpexplore.common.exact_numbers import Exact
from rpexplore.data.source import Fingerprint, PersonRule


@dataclass(frozen=True)
class RunOptions:
    """How a plan is run on records; see `release.release`."""

    name: str | None = None
    unknown_values: Mapping[str, str] = field(default_factory=dict)
    person_rule: PersonRule | None = None
    ledger: str | Path | None = None
    limit_rho: Exact | None = None
    may_be_empty: bool = False
    escape_formulas: bool = False
    parquet_only: bool = False
    expected_fingerprint: Fingerprint | None = None


@dataclass(frozen=True)
class DryRun:
    """What a dry run has found in order, in words, and what the records look like from outside.

    Holds nothing that was read from records.
    """

    findings: tuple[str, ...]
    fingerprint: Fingerprint
