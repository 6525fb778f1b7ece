"""Board notes: what people add to the report of a plan for the board that decides on it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rpexplore.common.files import file_bytes, utf8_text
from rpexplore.common.json_fields import list_of, loads, refusing, text_of
from rpexplore.common.numbers import shown, shown_few, shown_value
from rpexplore.common.text import check_text, is_text
from rpexplore.errors import WorkloadError

# The headings of a report's sections that can be commented on, in their order. Which of them a
# report has depends on its plan.
SECTIONS = (
    "Privacy label",
    "Codebook",
    "Aggregation",
    "Tables",
    "Accuracy",
    "Fairness",
    "Baselines",
    "Forecast",
    "Relative errors",
    "Targets",
    "Readings of the release",
    "Budget in context",
    "Proof",
    "Checklist: the points of NIST SP 800-226",
    "Versions and hashes",
)
TEXT_LENGTH, LINE_LENGTH = 2000, 300  # characters of a comment or decision, and of one line
MOST_LINES = 100
_SHA256 = re.compile(r"([0-9a-f]{8,64})?")


@dataclass(frozen=True)
class BoardNotes:
    """Comments on a report, open questions, and the decision of a board with its names and dates.

    All of it is typed by people. It is saved with the scenario and printed in the report.

    comments     (heading of a section, text) of each section with a comment, in their order
    questions    that are open
    decision     in words; "" while there is none
    decided_on   SHA-256 of the plan that the decision is on, or its first digits; "" where that is
                 not known
    decided_by   who has decided, and when: "A. Miller, chair, 2026-11-20"

    Raises `WorkloadError` for a text that is too long, or a section that no report has.

    Example:
        >>> BoardNotes().with_comment("Targets", "As agreed.").comment("Targets")
        'As agreed.'
    """

    comments: tuple[tuple[str, str], ...] = ()
    questions: tuple[str, ...] = ()
    decision: str = ""
    decided_on: str = ""
    decided_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        comments = dict(self.comments)
        unknown = [heading for heading in comments if heading not in SECTIONS]
        if unknown:
            raise WorkloadError(
                f"There is no section {shown(unknown[0])!r} in a report; comment on one of "
                f"{', '.join(SECTIONS)}."
            )
        for text in (*comments.values(), self.decision):
            check_text(text, "A comment or decision", TEXT_LENGTH, WorkloadError)
        for name in ("questions", "decided_by"):
            lines = [line for line in getattr(self, name) if not is_text(line) or line.strip()]
            for line in lines:
                check_text(line, "A line for the board", LINE_LENGTH, WorkloadError)
            if len(lines) > MOST_LINES:
                raise WorkloadError(
                    f"There can be {MOST_LINES} questions, and as many names, got {len(lines):,}."
                )
            object.__setattr__(self, name, tuple(line.strip() for line in lines))
        if not isinstance(self.decided_on, str) or not _SHA256.fullmatch(self.decided_on):
            raise WorkloadError(
                "A decision is on the SHA-256 of a plan, 8 to 64 hexadecimal digits, got "
                f"{shown_value(self.decided_on)}; copy it from the report."
            )
        kept = ((heading, comments.get(heading, "").strip()) for heading in SECTIONS)
        object.__setattr__(self, "comments", tuple(pair for pair in kept if pair[1]))
        object.__setattr__(self, "decision", self.decision.strip())
        object.__setattr__(self, "decided_on", self.decided_on if self.decision else "")

    @property
    def is_empty(self) -> bool:
        """Whether nothing was typed."""
        return self == BoardNotes()

    def comment(self, heading: str) -> str:
        """The comment on a section; "" if there is none."""
        return dict(self.comments).get(heading, "")

    def with_comment(self, heading: str, text: str) -> "BoardNotes":
        """A copy with this comment on a section, in the place of an earlier one."""
        return replace(self, comments=tuple({**dict(self.comments), heading: text}.items()))

    # ---- files

    def text(self) -> str:
        """The notes as JSON text, for `load`."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The notes as JSON values; `from_json` undoes it."""
        return {
            "comments": dict(self.comments),
            "questions": list(self.questions),
            "decision": self.decision,
            "decided_on": self.decided_on,
            "decided_by": list(self.decided_by),
        }

    @classmethod
    def from_json(cls, content: Any) -> "BoardNotes":
        """The notes that JSON values hold; what they leave out is empty.

        Raises `WorkloadError` if they are not usable.
        """
        with refusing(WorkloadError, "The notes for the board cannot be used"):
            parts: Mapping[str, Any] = cls().to_json() | content
            if unknown := parts.keys() - cls().to_json().keys():
                raise WorkloadError(
                    f"they have {shown_few(sorted(unknown))}; they may have "
                    f"{', '.join(cls().to_json())}."
                )
            return cls(
                tuple(dict(parts["comments"]).items()),
                tuple(list_of(parts, "questions")),
                text_of(parts, "decision"),
                text_of(parts, "decided_on"),
                tuple(list_of(parts, "decided_by")),
            )

    @classmethod
    def load(cls, path: str | Path) -> "BoardNotes":
        """The notes in a JSON file, described in docs/project-files.md."""
        content = file_bytes(path, f"The file of notes {str(path)!r}", WorkloadError)
        text = utf8_text(content, str(path), WorkloadError)
        with refusing(WorkloadError, str(path)):
            return cls.from_json(loads(text))
