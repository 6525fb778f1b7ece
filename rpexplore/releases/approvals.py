"""Approvals that a run of a plan needs, and their files in the folder of a release."""

import base64
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rpexplore.common.files import file_bytes, names_to_disk, utf8_text
from rpexplore.common.ssh_signatures import refusal
from rpexplore.common.text import check_text, joined, plural
from rpexplore.errors import ApprovalError, ReleaseError
from rpexplore.planning.approval import NAMESPACE, Approval, describe_approval, describe_checks
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.releases.atomic_folder import write_to_disk

# ---- Approvals that a run of a plan needs: whose, how many, and whether those given suffice.
#
# A ledger demands them, with the text of a list of allowed signers (ssh-keygen(1), ALLOWED
# SIGNERS): what counts is the list as it was noted there, whatever becomes of its file.


MOST = 100  # approvals of a run
LONGEST_LIST = 1 << 20  # characters

# Names, options such as namespaces="git,file", the type of a key, and the key, which begins with
# the length of its type, and so with AAAA. Nothing that ssh-keygen would read otherwise: it ends
# names with a quotation mark, and takes a quotation mark behind a backslash for none.
_LINE = re.compile(
    r"""[ \t]*([^ \t\r"]+)[ \t]+(?:((?:"[^"\\\r]*"|[^ \t\r"\\])+)[ \t]+)?"""
    r"""(?!AAAA)[^ \t\r"\\]+[ \t]+(AAAA[^ \t\r]*)(?:[ \t][^\r]*)?\r?"""
)
_NO_LINE = re.compile(r"[ \t\r]*(?:#.*)?", re.DOTALL)
_PATTERN = re.compile(r"[*?!]")


@dataclass(frozen=True)
class ApprovalDemand:
    """How many people must have approved a plan before it is run, and who may.

    Raises `ApprovalError` for a list that cannot be read, or has not so many people.

    n                how many, at least 1
    allowed_signers  the text of the list
    """

    n: int
    allowed_signers: str

    def __post_init__(self) -> None:
        if not 1 <= self.n <= MOST:
            raise ApprovalError(f"From 1 to {MOST} approvals can be demanded, got {self.n:,}.")
        check_text(self.allowed_signers, "A list of allowed signers", LONGEST_LIST, ApprovalError)
        n_people = len(_people(self._signers))
        if n_people < self.n and not any(is_authority for *_, is_authority in self._signers):
            raise ApprovalError(
                f"The list of allowed signers has {plural(n_people, 'person')} (who shares a name "
                f"or a key is one), and approvals by {self.n} are demanded; list more, or demand "
                "fewer."
            )

    @classmethod
    def load(cls, path: str | Path, n: int = 1) -> "ApprovalDemand":
        """A demand with the list in a file, as it is now."""
        source = f"The list of allowed signers {str(path)!r}"
        text = utf8_text(file_bytes(path, source, ApprovalError), source, ApprovalError)
        return cls(n, text.replace("\r\n", "\n"))

    @property
    def names(self) -> list[str]:
        """Whom the list names, line by line, patterns too."""
        return [names for names, *_ in self._lines]

    @cached_property
    def _lines(self) -> list[tuple[str, str, bytes]]:
        """Of each line its names, its options and its key."""
        lines = []
        for number, line in enumerate(self.allowed_signers.split("\n"), start=1):
            if _NO_LINE.fullmatch(line):
                continue
            found = _LINE.fullmatch(line)
            try:
                if found is None:
                    raise ValueError
                key = base64.b64decode(found[3], validate=True)
            except ValueError:
                raise ApprovalError(
                    f"Line {number} of the list of allowed signers must have names without "
                    "quotation marks, options without backslashes if wanted, the type of a key, "
                    "and the key, as ssh-keygen reads it; mend it."
                ) from None
            lines.append((found[1], found[2] or "", key))
        return lines

    @cached_property
    def _signers(self) -> list[tuple[list[str], str, bool]]:
        """Of each line its names without patterns, its key, and whether it is an authority's."""
        signers = []
        for names, options, key in self._lines:
            digest = base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
            literal = [name for name in names.split(",") if not _PATTERN.search(name)]
            without_values = re.sub('"[^"]*"', "", options.lower())
            is_authority = "cert-authority" in without_values.split(",")
            signers.append((literal, f"SHA256:{digest}", is_authority))
        return signers

    def people(self, approvals: Iterable[Approval]) -> list[list[str]]:
        """The names under which each person has approved.

        One person is whoever shares a name or a key, also where the list does so: names and the
        key of one line are one person's, unless it is the line of an authority.
        """
        pairs = [([approval.name], approval.key, False) for approval in approvals]
        names = dict.fromkeys(name for (name,), *_ in pairs)
        people = _people([*self._signers, *pairs])
        named = [[name for name in names if _mark(name) in person] for person in people]
        return [person for person in named if person]


class UnmeetableDemand(ApprovalDemand):
    """A demand that a ledger holds and nobody can meet, by a list that is none, or too short.

    Whoever may set demands on a server can enter one. It is read, and binds, like any other: a
    ledger with it stays readable, and its runs wait for another demand.
    """

    def __post_init__(self) -> None:
        pass

    @property
    def names(self) -> list[str]:
        """Nobody, and why."""
        return ["nobody (the list cannot be read, or is too short)"]

    @cached_property
    def _signers(self) -> list[tuple[list[str], str, bool]]:
        return []


def demand_as_noted(n: int, allowed_signers: str) -> ApprovalDemand:
    """The demand that a ledger holds, be it one that nobody can meet."""
    try:
        return ApprovalDemand(n, allowed_signers)
    except ApprovalError:
        return UnmeetableDemand(n, allowed_signers)


def load_approvals(approvals: Sequence[str | Path | Approval]) -> tuple[Approval, ...]:
    """Approvals given as files or values, each of them once. Raises `ApprovalError`."""
    if len(approvals) > MOST:
        raise ApprovalError(
            f"A plan can have {MOST} approvals, got {len(approvals):,}; leave out some."
        )
    loaded = [one if isinstance(one, Approval) else Approval.load(one) for one in approvals]
    return tuple({approval.sha256: approval for approval in loaded}.values())


def check_approvals(
    demands: Sequence[ApprovalDemand], plan_sha256: str, approvals: Sequence[Approval]
) -> None:
    """Raise `ApprovalError` unless each approval is right, and they meet every demand."""
    refuse_wrong(demands, plan_sha256, approvals)
    if missing := missing_text(demands, approvals):
        raise ApprovalError(missing)


def most_demanded(demands: Sequence[ApprovalDemand]) -> int:
    """By how many people the strictest of some demands wants approvals; 0 without a demand."""
    return max((demand.n for demand in demands), default=0)


def refuse_wrong(
    demands: Sequence[ApprovalDemand], plan_sha256: str, approvals: Sequence[Approval]
) -> None:
    """Raise `ApprovalError` for an approval that is not right.

    Each must be of this plan and signed by the key that it names and, where approvals are demanded,
    allowed by a list. Days between which a key is valid are judged now.
    """
    can_be_met = [one for one in demands if not isinstance(one, UnmeetableDemand)]
    for approval in approvals:
        approval.check(plan_sha256)
        reasons = [_refusal(approval, demand) for demand in can_be_met]
        if reasons and all(reasons):
            raise ApprovalError(
                f"The approval of {approval.name} does not count: its key {approval.key} "
                f"{reasons[0]} (in the list of allowed signers that the ledger holds); have the "
                "plan approved by who may."
            )


def _refusal(approval: Approval, demand: ApprovalDemand) -> str:
    """Why an approval does not count for a demand; "" if it does."""
    return refusal(
        approval.signed_text,
        approval.signature,
        NAMESPACE,
        demand.allowed_signers,
        approval.name,
    )


def missing_text(demands: Sequence[ApprovalDemand], approvals: Sequence[Approval]) -> str:
    """What is missing beside approvals that are right, as a sentence; "" for nothing."""
    for demand in demands:
        if isinstance(demand, UnmeetableDemand):
            return (
                f"The ledger demands approvals by {plural(demand.n, 'person')} for these records, "
                "of a list that cannot be read or has not so many people, so that no plan can have "
                "them; have whoever demands approvals give another list (rpexplore ledger "
                "--require-approvals)."
            )
        counted = approvals
        if len(demands) > 1:  # else all are of its list, or would have been refused
            counted = [approval for approval in approvals if not _refusal(approval, demand)]
        people = demand.people(counted)
        if len(people) >= demand.n:
            continue
        given = "there is none"
        if people:
            given = f"there {'is' if len(people) == 1 else 'are'} {len(people)}, by " + joined(
                [" alias ".join(names) for names in people]
            )
        left = demand.n - len(people)
        others = "somebody else" if people and left == 1 else plural(left, "person")
        of_list = "its list"
        if len(demands) > 1:
            of_list = f"a list ({'; '.join(demand.names)})"
        return (
            f"The ledger demands approvals by {plural(demand.n, 'person')} of {of_list} for these "
            f"records; so far {given}. Have the plan approved (rpexplore approve) by "
            f"{others}{' more' if people and left > 1 else ''}, and give the files to the run."
        )
    return ""


def _people(signers: Iterable[tuple[list[str], str, bool]]) -> list[set[str]]:
    """The names and keys of each person, where who shares a name or a key is one person."""
    people: list[set[str]] = []
    for names, key, is_authority in signers:
        if is_authority:  # its names are those of all whom it vouches for
            continue
        marks = {*map(_mark, names), f"key {key}"}
        same = [person for person in people if person & marks]
        people = [person for person in people if not person & marks]
        people.append(marks.union(*same))
    return people


def _mark(name: str) -> str:
    """What one person's names have in common: nobody is two by a capital letter."""
    return f"name {unicodedata.normalize('NFKC', name).casefold()}"


# ---- Approvals in the folder of a release: their files, and what manifest and README say of them.


FOLDER = "approvals"
APPROVALS = "approvals"  # their key in a manifest
_STATED = ("name", "key", "approved", "remarks")


def paths_of_approvals(n_approvals: int) -> list[str]:
    """Where so many approvals lie in a release."""
    return [f"{FOLDER}/{number}.json" for number in range(1, n_approvals + 1)]


def write_approvals(folder: Path, approvals: Sequence[Approval]) -> None:
    """Write the files of approvals; they are on disk afterwards."""
    if not approvals:
        return
    (folder / FOLDER).mkdir(exist_ok=True)
    for path, approval in zip(paths_of_approvals(len(approvals)), approvals, strict=True):
        write_to_disk(folder / path, approval.text)
    names_to_disk(folder / FOLDER)
    names_to_disk(folder)


def read_approvals(folder: Path, digests: Sequence[str]) -> tuple[Approval, ...]:
    """The approvals of an unfinished run, by their SHA-256. Raises `ReleaseError`."""
    approvals = []
    for path, digest in zip(paths_of_approvals(len(digests)), digests, strict=True):
        try:
            approval = Approval.load(folder / path)
            if approval.sha256 != digest:
                raise ApprovalError("it was changed")
        except ApprovalError:
            raise ReleaseError(
                f"The run in {str(folder)!r} cannot be finished: its approval {path} is missing or "
                "was changed; restore it."
            ) from None
        approvals.append(approval)
    return tuple(approvals)


def facts_of_approvals(approvals: Sequence[Approval], n_demanded: int) -> dict[str, Any]:
    """What a manifest says of approvals, by key; nothing where there are none."""
    if not approvals:
        return {}
    given = [
        {"path": path, **{key: getattr(approval, key) for key in _STATED}}
        for path, approval in zip(paths_of_approvals(len(approvals)), approvals, strict=True)
    ]
    return {APPROVALS: {"demanded": n_demanded, "given": given}}


def facts_in_folder(folder: Path, stated: Any, plan: Plan | PartPlan) -> dict[str, Any]:
    """What a manifest must say of the approvals in its folder, if it says how many there are.

    Whether they are signed is not checked here, as that needs ssh-keygen: `rpexplore verify` does.
    Raises `ApprovalError`, `KeyError` or `TypeError` for what cannot be.
    """
    n_demanded, n_given = stated["demanded"], len(stated["given"])
    if type(n_demanded) is not int or not 0 <= n_demanded <= n_given <= MOST or not n_given:
        raise ApprovalError("there are fewer approvals than were demanded")
    approvals = [Approval.load(folder / path) for path in paths_of_approvals(n_given)]
    booked = plan.booked_sha256
    if any(approval.plan_sha256 != booked for approval in approvals):
        raise ApprovalError("an approval is of another plan")
    return facts_of_approvals(approvals, n_demanded)


def readme_section(approvals: Sequence[Approval], n_demanded: int) -> str:
    """The section of a README that names who approved; "" without approvals.

    In lines of code, where remarks that people type are nothing but text.
    """
    if not approvals:
        return ""
    lines = "".join(f"    {describe_approval(approval)}\n" for approval in approvals)
    return (
        f"\n## Who approved the plan\n\n{describe_checks(n_demanded, booked=True)} "
        f"Their files are in `{FOLDER}/`; check them with `rpexplore verify plan.json --approval "
        f"FILE --allowed-signers FILE`.\n\n{lines}"
    )
