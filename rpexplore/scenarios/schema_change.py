"""What becomes of the tables that were asked for when the schema changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rpexplore.common.formatting import plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.basis_choices import BasisChoice, without_needless
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.table_text import Table, list_titles


@dataclass(frozen=True)
class SchemaChange:
    """A schema that takes the place of another one.

    renamed         old attribute name -> new one, for attributes that only changed their name
    from_elsewhere  it was not edited but loaded, so that a weight, a target or a way to ask
                    is kept only where its attributes have the same values as before
    """

    old: Domain
    new: Domain
    renamed: Mapping[str, str]
    from_elsewhere: bool = False

    def request(self, asked: WorkloadRequest) -> tuple[WorkloadRequest, list[str]]:
        """What is asked for now, and a sentence for everything that had to be given up."""
        listed = tuple(table for old in asked.listed if (table := self._moved(old)) is not None)
        settings = tuple(
            replace(setting, attributes=table)
            for setting in asked.settings
            if (table := self._settled(setting.attributes)) is not None
        )
        groups = tuple(
            replace(group, containing=table)
            for group in asked.groups
            if (table := self._settled(group.containing)) is not None
        )
        basis_choices, basis_notes = self._basis_choices(asked.basis_choices)
        request = replace(
            asked,
            basis_choices=basis_choices,
            listed=listed,
            settings=settings,
            groups=groups,
            only=self._still_there(asked.only),
            containing=self._still_there(asked.containing),
        )
        notes = self._given_up(asked) + basis_notes
        emptied = request.kind == "listed" and not listed
        if emptied:
            request = replace(request, kind="up_to", order=2)
        if len(self.new) == 0:
            return request, notes
        if emptied:
            notes.append(
                "No listed table fits the schema any more; all tables of up to "
                f"{plural(min(2, len(self.new)), 'attribute')} are asked for instead."
            )
        before, now = (min(asked.order, len(each)) for each in (self.old, self.new))
        if now < before and asked.kind in ("up_to", "of_order"):
            extent = "up to" if asked.kind == "up_to" else "exactly"
            notes.append(
                f"The tables had {extent} {plural(before, 'attribute')}; the schema now has "
                f"{now}, so they have {extent} {now}."
            )
        if self.from_elsewhere and request.is_narrowed:
            notes.append(f"Still narrowed down: {request.text}.")
        try:
            request.workload(self.new)
        except WorkloadError as error:  # too many tables for the new schema, or none
            notes.append(f"{error} All tables of one attribute are asked for instead.")
            request = replace(
                request, kind="up_to", order=1, only=(), containing=(), most_cells=None
            )
        return request, notes

    def _moved(self, table: Table) -> Table | None:
        """The table under its new names; None if it has lost an attribute."""
        names = self._still_there(table)
        return names if len(names) == len(table) else None

    def _still_there(self, names: Iterable[str]) -> Table:
        """Those of these attributes that there still are, under their new names."""
        now = map(self._renamed, names)
        return in_order(self.new, [name for name in now if name in self.new])

    def _basis_choices(
        self, basis_choices: Iterable[BasisChoice]
    ) -> tuple[tuple[BasisChoice, ...], list[str]]:
        """How attributes are asked now, and a sentence for every way that had to be given up."""
        kept, notes = [], []
        for basis_choice in basis_choices:
            name, why = self._renamed(basis_choice.attribute), self._why_not(basis_choice)
            tables = [
                moved for table in basis_choice.tables if (moved := self._moved(table)) is not None
            ]
            gone = [table for table in basis_choice.tables if self._moved(table) is None]
            if not why and (tables or not basis_choice.tables):
                kept.append(BasisChoice(name, basis_choice.basis, tuple(tables)))
            words, whose = (
                basis_choice.basis.describe(self.old[basis_choice.attribute]),
                repr(basis_choice.attribute),
            )
            if why:
                where = f" in {list_titles(basis_choice.tables)}" if basis_choice.tables else ""
                notes.append(
                    f"Dropped, because {why}: how attribute {whose} was asked{where} ({words}). "
                    f"It is asked {'as elsewhere' if where else 'by its single values'} again."
                    if name in self.new
                    else f"Dropped along with attribute {whose}: how it was asked{where} ({words})."
                )
            elif gone:
                notes.append(
                    "Dropped, because the schema no longer has their attributes: how attribute "
                    f"{whose} was asked in {list_titles(gone)} ({words})."
                )
        return without_needless(kept), notes

    def _why_not(self, basis_choice: BasisChoice) -> str:
        """Why an attribute cannot be asked so any more; "" if it can."""
        old, name = self.old[basis_choice.attribute], self._renamed(basis_choice.attribute)
        if name not in self.new:
            return "the schema no longer has it"
        new = self.new[name]
        if basis_choice.basis.is_identity:
            return ""
        if self.from_elsewhere and old.values != new.values:
            return "its values are others in the loaded schema"
        if self.from_elsewhere and basis_choice.basis.uses_groups and old.groups != new.groups:
            return "its groups are others in the loaded schema"
        try:
            basis_choice.basis.check(new)
        except WorkloadError as error:
            return f"it no longer fits ({str(error).rstrip('.')})"
        return ""

    def _renamed(self, name: str) -> str:
        return self.renamed.get(name, name)

    def _settled(self, table: Table) -> Table | None:
        """Where the settings of a table or a group go."""
        same = not self.from_elsewhere or all(
            name in self.new and self.old[name].values == self.new[name].values for name in table
        )
        return self._moved(table) if same else None

    def _given_up(self, asked: WorkloadRequest) -> list[str]:
        """Sentences that name what has no place in the new schema."""
        lost = {
            "listed table": [table for table in asked.listed if self._moved(table) is None],
            "weight or target of table": [
                setting.attributes
                for setting in asked.settings
                if self._settled(setting.attributes) is None
            ],
            "weight or target of all tables with": [
                group.containing
                for group in asked.groups
                if self._settled(group.containing) is None
            ],
            "attribute that the tables were narrowed to": [
                (name,)
                for name in dict.fromkeys((*asked.only, *asked.containing))
                if not self._still_there([name])
            ],
        }
        return [
            "Dropped, because the schema no longer has their attributes as they were: "
            f"{noun} {list_titles(tables)}."
            for noun, tables in lost.items()
            if tables
        ]


def in_order(domain: Domain, names: Iterable[str]) -> Table:
    """The names in the order of the domain."""
    return tuple(domain.names[place] for place in domain.positions(list(names)))
