"""What becomes of the tables that were asked for when the codebook changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from rpexplore.common.text import plural
from rpexplore.domain.domain import Domain, difference_of_cells
from rpexplore.domain.values import describe_combinations
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.bases import BasisChoice, without_needless
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import TableLine, WorkloadRequest
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.table_text import Table, list_titles

Setting = TypeVar("Setting", TableSetting, GroupSetting)


@dataclass(frozen=True)
class CodebookChange:
    """A codebook that takes the place of another one.

    renamed         old attribute name -> new one, for attributes that only changed their name
    from_elsewhere  it was not edited but loaded, so that a weight, a target or a basis is kept
                    only where its attributes have the same values as before
    """

    old: Domain
    new: Domain
    renamed: Mapping[str, str]
    from_elsewhere: bool = False

    def request(self, before: WorkloadRequest) -> tuple[WorkloadRequest, list[str]]:
        """The request for the new codebook, and a sentence for everything that was given up."""
        listed, lost_tables = self._moved_tables(before.listed)
        more, lost_further = self._moved_lines(before.more)
        lost_tables += lost_further
        settings, lost_settings = self._moved_settings(before.settings, "attributes")
        groups, lost_groups = self._moved_settings(before.groups, "containing")
        basis_choices, basis_notes = self._basis_choices(before.basis_choices)
        narrowing = dict.fromkeys(
            name for line in before.lines for name in (*line.only, *line.containing)
        )
        lost = {
            "listed table": lost_tables,
            "weight or target of table": lost_settings,
            "weight or target of all tables with": lost_groups,
            "attribute that the tables were narrowed to": [
                (name,) for name in narrowing if not self._still_there([name])
            ],
        }
        notes = [
            "Dropped, because the codebook no longer has their attributes as they were: "
            f"{noun} {list_titles(tables)}."
            for noun, tables in lost.items()
            if tables
        ]
        notes += basis_notes
        weighted_by = self._renamed(before.weighted_by) if before.weighted_by else ""
        weights = [self.new.names[index] for index in self.new.weights]
        if weighted_by and weighted_by not in weights:
            notes.append(
                f"The tables count records and are no longer weighted by {before.weighted_by!r}, "
                "of which the codebook has no weights any more."
            )
            weighted_by = ""
        smooth_weights, weight_notes = self._smooth_weights(before.smooth_weights)
        notes += weight_notes
        request = replace(
            before,
            smooth_weights=smooth_weights,
            basis_choices=basis_choices,
            listed=listed,
            settings=settings,
            groups=groups,
            only=self._still_there(before.only),
            containing=self._still_there(before.containing),
            more=more,
            weighted_by=weighted_by,
            unweighted=self._moved_tables(before.unweighted)[0],
        )
        emptied = request.kind == "listed" and not listed
        if emptied and more:
            request, emptied = request.with_lines(more), False
        if emptied:
            request = replace(request, kind="up_to", order=2)
        if len(self.new) == 0:
            return request, notes
        if emptied:
            notes.append(
                "No listed table fits the codebook any more; all tables up to "
                f"{min(2, len(self.new))}-way take their place."
            )
        old_order, order = (min(before.order, len(domain)) for domain in (self.old, self.new))
        if order < old_order and before.kind in ("up_to", "of_order"):
            extent = "up to " if before.kind == "up_to" else ""
            notes.append(
                f"The codebook now has {plural(order, 'attribute')}; the tables are "
                f"{extent}{order}-way instead of {extent}{old_order}-way."
            )
        if self.from_elsewhere and request.is_narrowed:
            notes.append(f"Still narrowed down: {request.text}.")
        try:
            request.workload(self.new)
        except WorkloadError as error:  # too many tables for the new codebook, or none
            notes.append(f"{error} All tables up to 1-way take their place.")
            request = replace(
                request, kind="up_to", order=1, only=(), containing=(), most_cells=None, more=()
            )
        return request, notes

    @property
    def lost_combinations(self) -> list[str]:
        """A sentence for the impossible combinations that the new codebook does not state."""
        kept = [dict(combination.selections) for combination in self.new.impossible]
        lost = [one for one in self.old.impossible if one.renamed(self.renamed) not in kept]
        if not lost:
            return []
        reason = "the codebook no longer has their attributes or values as they were"
        if self.from_elsewhere:
            reason = "the loaded codebook does not state them"
        return [f"Dropped, because {reason}: {describe_combinations(lost)}"]

    def _moved_lines(self, lines: Iterable[TableLine]) -> tuple[tuple[TableLine, ...], list[Table]]:
        """Lines under new names, without lists of which nothing is left; and the tables lost."""
        moved, lost = [], []
        for line in lines:
            listed, gone = self._moved_tables(line.listed)
            only, containing = map(self._still_there, (line.only, line.containing))
            lost += gone
            if listed or line.kind != "listed":
                moved.append(replace(line, listed=listed, only=only, containing=containing))
        return tuple(moved), lost

    def _moved_tables(self, tables: Iterable[Table]) -> tuple[tuple[Table, ...], list[Table]]:
        """The tables under their new names, and those that have lost an attribute."""
        moved = {table: self._still_there(table) for table in tables}
        lost = [table for table, names in moved.items() if len(names) < len(table)]
        return tuple(moved[table] for table in moved if table not in lost), lost

    def _still_there(self, names: Iterable[str]) -> Table:
        """Those of these attributes that there still are, under their new names."""
        new_names, there = map(self._renamed, names), self.new.with_levels
        return there.in_order(name for name in new_names if name in there)

    def _renamed(self, name: str) -> str:
        """What an attribute is called now; a level by the new name of its attribute."""
        known = self.old.with_levels
        of = known[name].of if name in known else ""
        if not of:
            return self.renamed.get(name, name)
        return self.renamed.get(of, of) + name.removeprefix(of)

    def _moved_settings(
        self, settings: Iterable[Setting], field: str
    ) -> tuple[tuple[Setting, ...], list[Table]]:
        """The settings with their tables, in this field, under new names; tables that are lost.

        A table is lost with an attribute, and with one whose values came from elsewhere and differ.
        """
        kept, lost = [], []
        old, new = self.old.with_levels, self.new.with_levels
        for setting in settings:
            table = getattr(setting, field)
            names = self._still_there(table)
            differs = self.from_elsewhere and any(
                name not in new or old[name] != new[name]
                if old[name].of
                else name not in new or old[name].values != new[name].values
                for name in table
            )
            if differs or len(names) < len(table):
                lost.append(table)
            else:
                kept.append(replace(setting, **{field: names}))
        return tuple(kept), lost

    def _smooth_weights(
        self, weights: SmoothWeights | None
    ) -> tuple[SmoothWeights | None, list[str]]:
        """The weights for smooth tables; without what a release shows if it is another codebook."""
        if weights is None or weights.pairs is None:
            return weights, []
        if not (difference := difference_of_cells(self.old, self.new)):
            return weights, []
        return replace(weights, pairs=None), [
            f"Dropped, because the old codebook, which is the release's, and the new one "
            f"{difference}: {weights.pairs.text}."
        ]

    def _basis_choices(
        self, basis_choices: Iterable[BasisChoice]
    ) -> tuple[tuple[BasisChoice, ...], list[str]]:
        """The basis choices that still fit, and a sentence for every one that was given up."""
        choices, notes = [], []
        for choice in basis_choices:
            name = self._renamed(choice.attribute)
            tables, lost = self._moved_tables(choice.tables)
            reason = self._reason_to_drop(choice)
            if not reason and (tables or not choice.tables):
                choices.append(BasisChoice(name, choice.basis, tables))
            if reason:
                lost = choice.tables
            elif lost:
                reason = "the codebook no longer has their attributes"
            if reason:
                where = f" in {list_titles(lost)}" if lost else ""
                notes.append(
                    f"Dropped, because {reason}: the basis of attribute {choice.attribute!r}"
                    f"{where} ({choice.basis.describe(self.old.with_levels[choice.attribute])})."
                )
        return without_needless(choices), notes

    def _reason_to_drop(self, choice: BasisChoice) -> str:
        """Why an attribute cannot have its basis any more; "" if it can."""
        old, name = self.old.with_levels[choice.attribute], self._renamed(choice.attribute)
        if name not in self.new.with_levels:
            return "the codebook no longer has it"
        new = self.new.with_levels[name]
        if choice.basis.is_identity:
            return ""
        if self.from_elsewhere and old.values != new.values:
            return "its values are others in the loaded codebook"
        if self.from_elsewhere and choice.basis.uses_groups and old.groups != new.groups:
            return "its groups are others in the loaded codebook"
        try:
            choice.basis.check(new)
        except WorkloadError as error:
            return f"it no longer fits ({str(error).rstrip('.')})"
        return ""
