"""A release in the background: a rerun of the page, another page, or a reload of the browser must
not stop it or start it twice, because a run that has been booked is charged even if it fails."""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from rpexplore.analysis.adaptive import NOTHING_PROMISED
from rpexplore.analysis.drawn_areas import DrawnAreas
from rpexplore.analysis.drawn_counts import drawn_once
from rpexplore.analysis.published_lines import (
    area_forecast_of_scenario,
    forecast_of_scenario,
    public_of_areas,
)
from rpexplore.analysis.targets_met import target_counts
from rpexplore.common.files import nearest_folder, typed_path, why_no_name
from rpexplore.common.installation import RELEASES, is_sample_data
from rpexplore.common.processes import Progress
from rpexplore.common.text import joined, text_of_path
from rpexplore.data.source import Fingerprint, PersonRule, Source
from rpexplore.errors import LedgerError, RpexploreError
from rpexplore.planning.approval import Approval
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.account import Account
from rpexplore.releases.ledger.ledger import FILENAME, Ledger, is_database
from rpexplore.releases.ledger.overlaps import known_ledger
from rpexplore.releases.ledger.spent import Reading, Spent
from rpexplore.releases.release import can_be_resumed, release
from rpexplore.releases.release_steps import PlanSteps
from rpexplore.scenarios.autosave import Autosaves, SavedRelease
from rpexplore.scenarios.scenario import Scenario
from rpexplore.serving.tasks import Task

T = TypeVar("T")
Keep: TypeAlias = Callable[..., Any]

# Since when releases are going, by each name of their records: one list for all sessions of the
# server. Every session may read it, so it holds nothing else.
_going: dict[str, datetime] = {}
_lock = threading.Lock()


def going_since(data: Source) -> datetime | None:
    """When the release of these records began that is going on now, in whatever session."""
    return next((_going[name] for name in _names_of(data) if name in _going), None)


def any_going() -> bool:
    """Whether there is a release of any records at all."""
    return bool(_going)


def _names_of(data: Source) -> tuple[str, ...]:
    """What the records are called in every session."""
    return data.names(Path("/"))


@dataclass(frozen=True, kw_only=True)
class ReleaseInputs:
    """What is released, from what and to where, and the account that was shown beside it."""

    plan: Plan
    scenario: Scenario  # that the plan is of
    data: Source
    output: Path
    unknown_values: Mapping[str, str]
    missing_values: Mapping[str, str]
    person_rule: PersonRule | None
    ledger: Ledger
    limit: Fraction | None  # ρ of the plan's privacy unit
    account: Account
    escape_formulas: bool = False  # in CSV files
    parquet_only: bool = False
    file_per_table: bool = False
    count_impossible: bool = False
    approvals: tuple[Approval, ...] = ()
    pilot_only: bool = False
    expected_fingerprint: Fingerprint | None = None  # what a dry run has seen of the records

    def is_same_run(self, other: "ReleaseInputs") -> bool:
        """Whether others would do the same, whatever was checked or spent meanwhile."""
        same = {name: getattr(self, name) for name in ("scenario", "account")}
        same["expected_fingerprint"] = None
        return replace(self, **same) == replace(other, **same)

    @property
    def reading(self) -> Reading:
        """How records are read and counted, as far as a ledger tells runs apart by it."""
        takers = (self.unknown_values, self.missing_values)
        return Reading(self.data.reading, *takers, self.person_rule)

    def call(self, function: Callable[..., T], on_progress: Progress, **options: Any) -> T:
        """What `release` or `dry_run` returns for these inputs."""
        # Only the folder of releases may not be there yet; the page refuses others.
        if self.ledger.path is not None:
            self.ledger.path.parent.mkdir(parents=True, exist_ok=True)
        return function(
            self.plan,
            self.data,
            self.output,
            unknown_values=self.unknown_values,
            missing_values=self.missing_values,
            count_impossible=self.count_impossible,
            person_rule=self.person_rule,
            ledger=self.ledger.name,
            limit_rho=self.limit,
            escape_formulas=self.escape_formulas,
            parquet_only=self.parquet_only,
            file_per_table=self.file_per_table,
            approvals=self.approvals,
            on_progress=on_progress,
            **options,
        )

    def amount_text(self, spent: Spent) -> str:
        """ρ for the plan's privacy unit, with the ε that is proven."""
        budget = self.plan.budget
        rho = rho_text(spent.record_rho * budget.records_factor, 4)
        epsilon = spent.epsilon_text(budget)
        return f"{rho} ({epsilon})" if epsilon else rho


class ReleaseTask(Task[Release]):
    """The task of one release; a server that is stopped waits for it once it has been booked.

    project_key  of the saved project that it belongs to; "" if that has been given up
    charge       what the ledger says afterwards that it has cost
    """

    def __init__(self, inputs: ReleaseInputs, project_key: str) -> None:
        super().__init__(self._release, kept_from=PlanSteps.of(inputs.plan).booked_share)
        self.inputs, self.project_key = inputs, project_key
        # Behind its pilot a run is unfinished: nothing that a project finds again.
        self.charge, self._is_noted = "", inputs.pilot_only
        self._names = _names_of(inputs.data)

    @classmethod
    def begin(cls, inputs: ReleaseInputs, project_key: str) -> "ReleaseTask | None":
        """Start a release, unless another one of the same records is going."""
        task = cls(inputs, project_key)
        with _lock:
            if going_since(inputs.data) is not None:
                return None
            _going.update(dict.fromkeys(task._names, datetime.now(UTC)))
        try:
            task.start()
        except BaseException:
            task._forget()
            raise
        return task

    @property
    def kinds(self) -> set[str]:
        """The kinds of the parts that are released."""
        return {part.kind for part in self.inputs.plan.parts}

    @property
    def failed(self) -> bool:
        return not self.is_going and self.result is None

    def cost_of_cancelling(self) -> str:
        """What cancelling now would cost, as sentences; "" before the run is booked."""
        if self.share < self.kept_from:
            return ""
        further = "It can be run again into the same folder without further cost."
        if self.share > PlanSteps.of(self.inputs.plan).drawn_share:
            further = "Its noise is drawn and kept; it can be finished later without further cost."
        rho = self.inputs.amount_text(Spent.by(self.inputs.plan))
        return f"This run is in the ledger: {rho} stays charged. {further}"

    def _release(self, on_progress: Progress) -> Release:
        inputs, drawn_share = self.inputs, PlanSteps.of(self.inputs.plan).drawn_share

        def noting(doing: str, share: float) -> None:
            if share >= drawn_share and not self._is_noted:  # it can be finished, whatever stops it
                self._note()
            on_progress(doing, share)

        charge_is_said = False
        try:
            return inputs.call(
                release,
                noting,
                expected_fingerprint=inputs.expected_fingerprint,
                pilot_only=inputs.pilot_only,
            )
        except RpexploreError as error:
            charge_is_said = error.says_charge
            raise
        finally:
            if not self._is_noted and can_be_resumed(inputs.output):
                self._note()
            self.charge = "" if charge_is_said else self._describe_charge()
            self._forget()

    def _note(self) -> None:
        """Note the release with its saved project; without that only this session knows of it."""
        self._is_noted = True
        plan, folder = self.inputs.plan, self.inputs.output.absolute()
        noted = SavedRelease(
            folder,
            plan.contents,
            ",".join(part.kind for part in plan.parts),
            self.inputs.scenario,
        )
        if self.project_key:
            with suppress(OSError):
                Autosaves.of_user().save_release(self.project_key, noted)

    def _forget(self) -> None:
        for name in self._names:
            _going.pop(name, None)

    def _describe_charge(self) -> str:
        inputs = self.inputs
        try:
            after = inputs.ledger.account(inputs.data)
        except Exception:
            return "What was charged cannot be read from the ledger."
        output = text_of_path(inputs.output.resolve())
        entries = [entry for entry in after.entries if entry.output == output]
        before = {entry.id for entry in inputs.account.entries}
        charged = Spent.together(entry.spent for entry in entries if entry.id not in before)
        if not charged.record_rho:
            return "Nothing further was charged." if entries else "Nothing was charged."
        return (
            f"This run was charged {inputs.amount_text(charged)}, which cannot be undone; in total "
            f"{inputs.amount_text(after.spent)} has been spent on these records."
        )


# ---- Where a release is booked.


def usual_ledger(data: Source) -> tuple[Path | None, str]:
    """The ledger if no other is named, and where it is, in words; None for a database."""
    if data.home is None:
        return None, "/data/ledger.sqlite or postgresql:NAME"
    beside = data.home / FILENAME
    # The sample may be part of an installed package, which is no place for one's own files. But
    # where the command line has booked a run on it already, that is its account.
    if is_sample_data(data.home) and not beside.exists():
        return RELEASES / FILENAME, str(RELEASES / FILENAME)
    return beside, "beside the records"


def usable_ledger(data: Source, typed: str, usual: Path | None) -> Ledger | None:
    """The ledger as typed, else that in which these records have their account, else the usual one.

    None without any; refused where they have their account in another one than was typed.
    """
    named: str | Path | None = None
    if typed.strip():
        named = typed if is_database(typed) else _writable_ledger(typed_path(typed)).name
    ledger = known_ledger(data, named, [] if usual is None else [Ledger(usual)])
    if ledger is None:
        return None if usual is None else _writable_ledger(usual)
    if ledger.path is not None:
        return _writable_ledger(ledger.path)
    ledger.store.check_bookable()
    return ledger


def _writable_ledger(path: Path) -> Ledger:
    if problem := why_no_name(path):
        raise LedgerError(f"A ledger cannot have that name ({problem}); name another file.")
    path = Path(os.path.realpath(path))
    if not os.path.isdir(path.parent) and path.parent != RELEASES.resolve():  # made when needed
        raise LedgerError(f"There is no folder {path.parent} for the ledger; check the path.")
    is_new = not os.path.lexists(path)
    can_be_written = is_writable(nearest_folder(path)) and (is_new or is_writable(path))
    if os.path.isdir(path) or not can_be_written:
        raise LedgerError(f"The ledger {path} cannot be written; name another file.")
    return Ledger(path)


def is_writable(path: Path) -> bool:
    mode = os.W_OK | os.X_OK if os.path.isdir(path) else os.W_OK
    return os.access(path, mode)


# ---- What a run does, said before it.


_MOST_FORECAST = 1000  # tables, while a dialog opens


def run_facts(
    inputs: ReleaseInputs, scenario: Scenario, keep: Keep, *, paid: bool
) -> dict[str, str]:
    """What is run on what, what it spends and what is gained, by label.

    keep: calls what takes time, or returns what it returned before for the same arguments
    """
    plan, account, limit = inputs.plan, inputs.account, inputs.limit
    factor, amount = plan.budget.records_factor, plan.budget.amount_text
    before = account.spent
    after = before if paid else account.spent_after(plan, inputs.reading)
    if account.limit_record_rho is not None:
        limit = account.limit_record_rho * factor
    remaining = "none; later runs may spend any amount"
    if limit is not None:
        # A limit as it is typed may be more than a run costs by what is lost in rounding.
        rest = limit - after.record_rho * factor
        left = "nothing" if rest * 1000 < plan.rho else amount(rest, "down")
        remaining = f"{amount(limit)}, then {left} left"
    names = joined(list(dict.fromkeys(one.name for one in inputs.approvals)))
    approved = {"Approved by": names} if names else {}
    is_checked = inputs.expected_fingerprint is not None
    return {
        "Scenario": scenario.name,
        "Release": f"{plan.full_contents}, into {inputs.output}",
        **({"Drawn now": "the pilot, its one-way tables"} if inputs.pilot_only else {}),
        "Records": inputs.data.name,
        "Privacy cost": f"{plan.amount_text} for {plan.budget.full_unit}",
        "Ledger": (f"{inputs.amount_text(before)} spent before, {inputs.amount_text(after)} after"),
        "Budget limit": remaining,
        **approved,
        **_usefulness_facts(plan, scenario, keep),
        "Dry run": "passed" if is_checked else "not made",
    }


def _usefulness_facts(plan: Plan, scenario: Scenario, keep: Keep) -> dict[str, str]:
    """How many targets are missed and, of tables, their forecast, by label.

    And of tables in areas. Of adaptive tables, that nothing is promised.
    """
    facts = {"Accuracy": NOTHING_PROMISED} if plan.part("rounds") is not None else {}
    promised = [target_counts(part) for part in plan.parts if part.kind != "rounds"]
    if promised:
        n_targets = sum(counts.targets for counts in promised)
        n_missed = n_targets - sum(counts.met for counts in promised)
        missed = f"{n_missed:,} of {n_targets:,} missed"
        facts["Targets"] = missed if n_targets else "none set"
    if (tables := plan.part("tables")) is not None:
        facts["Forecast"] = _forecast(tables, scenario, keep)
    if (areas := plan.part("areas")) is not None:
        facts["Forecast in areas"] = _forecast_in_areas(areas, scenario, keep)
    return facts


def _forecast(plan: TablePlan, scenario: Scenario, keep: Keep) -> str:
    try:
        public = scenario.public_tables
        if public is None:
            return "none without expected counts"
        if len(plan.workload) > _MOST_FORECAST:
            return "on the Plan page"
        # Those of the Plan page, if it was looked at.
        drawn = keep(drawn_once, plan.workload, public, (scenario.public, scenario.expected))
        return forecast_of_scenario(plan, drawn, scenario).describe()
    except RpexploreError:
        return "none, as the expected counts do not fit the tables"


def _forecast_in_areas(plan: AreaPlan, scenario: Scenario, keep: Keep) -> str:
    try:
        study = scenario.planned_areas
        public = None if study is None else public_of_areas(scenario, study)
        if public is None:
            return "none without expected counts"
        drawn = keep(DrawnAreas.of, plan.workload, public)
        return area_forecast_of_scenario(plan, drawn, scenario).describe()
    except RpexploreError:
        return "none, as the expected counts do not fit the tables in areas"
