"""Own counts while they are typed or built: what is not in the list yet."""

from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.conditions import TOTAL
from rpexplore.workload.query_definitions import (
    StatedQueries,
    stated_from_lines,
    stated_from_text,
    text_from_stated,
    with_conditions,
)
from rpexplore.workload.query_edits import (
    differences_from_codebook,
    domain_of_conditions,
    domain_of_text,
)
from rpexplore.workload.targets import Target

MOST_LISTED = 1000  # queries that can be edited as text


class TypedLines:
    """What was typed and is not in effect yet.

    typed  lines that wait to be read, or were refused; None while the list's own are shown
    """

    def __init__(self) -> None:
        self.typed: str | None = None
        self._revision = ""

    def type(self, text: str, revision: str) -> None:
        """Keep typed lines; `revision` names the state of the project that they were typed for."""
        self.typed, self._revision = text, revision

    def forget_others(self, revision: str) -> None:
        """Drop lines that were typed before an undo, or for another project."""
        if revision != self._revision:
            self.typed = None

    def read(
        self, codebook: Domain, present: StatedQueries | None, target: Target | None
    ) -> StatedQueries | None:
        """The list that the typed lines state; None if they are blank.

        It is about the attributes that the lines name; of a list with others than the codebook's,
        about these. target: of lines without one. Raises `WorkloadError` for lines that cannot be
        read.
        """
        if not self.typed or not self.typed.strip():
            return None
        own = None if present is None else present.queries.domain
        if own is not None and not differences_from_codebook(own, codebook):
            own = None
        return stated_from_text(domain_of_text(codebook, self.typed, own), self.typed, target)

    def shown(self, present: StatedQueries | None) -> str | None:
        """The lines to show: typed ones, or the list's; None for a list that no lines can hold."""
        if self.typed is not None:
            return self.typed
        if present is None:
            return ""
        try:
            return text_from_stated(present) if len(present) <= MOST_LISTED else None
        except WorkloadError:
            return None


def built_count(
    codebook: Domain, name: str, definition: str, target: Target | None
) -> StatedQueries:
    """The counts of one definition, about the attributes that it names.

    definition: a condition, maybe by attributes; "": everybody

    Raises `WorkloadError` naming the condition, for one that cannot be read and without a target.
    """
    definition = definition or TOTAL
    where = f"Condition {definition}"
    if target is None:
        raise WorkloadError("The count needs a target; mend the one for all counts first.")
    try:
        about = domain_of_conditions(codebook, [definition])
    except WorkloadError as error:
        raise WorkloadError(f"{where}: {error}") from None
    lines = with_conditions(about, [(where, name.strip(), definition, target.text)])
    return stated_from_lines(about, lines)
