"""The lines of a list of queries while they are edited: typed, taken over, or kept to be mended."""

from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.queries.definitions import StatedQueries, stated_from_text, text_from_stated
from rpexplore.queries.edits import chosen_domain, domain_of_text
from rpexplore.workload.targets import Target

MOST_LISTED = 1000  # queries that can be edited as text


class TypedLines:
    """What was typed and is not in effect yet, and what a list is about that is not there yet.

    typed   lines that wait to be read, or were refused; None while the list's own are shown
    chosen  names of attributes, of which the codebook may have lost some
    """

    def __init__(self) -> None:
        self.typed: str | None = None
        self.chosen: tuple[str, ...] = ()
        self._revision = ""

    def type(self, text: str, revision: str) -> None:
        """Keep typed lines; `revision` names the state of the project that they were typed for."""
        self.typed, self._revision = text, revision

    def forget_others(self, revision: str) -> None:
        """Drop lines that were typed before an undo, or for another project."""
        if revision != self._revision:
            self.typed = None

    def domain(self, codebook: Domain, present: StatedQueries | None) -> Domain | None:
        """What the queries are about: the list's attributes, or the chosen ones; None: nothing."""
        if present is not None:
            return present.queries.domain
        chosen = [name for name in self.chosen if name in codebook]
        try:
            return chosen_domain(codebook, chosen) if chosen else None
        except RpexploreError:  # the codebook has changed since they were chosen
            return None

    def read(
        self, codebook: Domain, present: StatedQueries | None, target: Target | None
    ) -> StatedQueries | None:
        """The list that the typed lines state; None if they are blank.

        target: of lines without one. Raises `WorkloadError` for lines that cannot be read.
        """
        if not self.typed or not self.typed.strip():
            return None
        domain = domain_of_text(codebook, self.typed, self.domain(codebook, present))
        return stated_from_text(domain, self.typed, target)

    def accept(self, before: StatedQueries | None) -> None:
        """Note that what was read is in effect; the attributes of a removed list stay chosen."""
        if before is not None and not (self.typed or "").strip():
            self.chosen = before.queries.domain.names
        self.typed = None

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
