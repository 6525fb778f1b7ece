"""Codebooks on the command line: read with their options, and shown.

Apart from what plans need, so that `schema` loads nothing of planning.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpexplore.cli import area_options
from rpexplore.cli.console import text_table
from rpexplore.common.text import plural
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.codebook_columns import ROLES, ROLES_OF_VARIABLES
from rpexplore.domain.codebook_rows import VARIABLES
from rpexplore.errors import WorkloadError

if TYPE_CHECKING:
    from rpexplore.domain.area_tree import AreaTree
    from rpexplore.domain.domain import Domain
    from rpexplore.domain.record_layout import RecordLayout

_KINDS = {
    "Categories": "categories",
    "Integers": "whole numbers",
    "Bins": "bins",
    "Dates": "dates",
    "Amounts": "amounts",
}
_FIRST_VALUES = 4


def codebook_from_options(
    codebook: Path,
    areas: Path | None,
    level_names: str | None,
    separator: str | None,
    lengths: str | None,
    recode_areas: Sequence[str] | None,
    *,
    resource: str | None = None,
    columns: dict[str, str] | None = None,
    encoding: str | None = None,
    language: str = "",
    pending: Sequence[str] = (),
) -> "tuple[AreaTree | None, Domain]":
    """The attributes, and the areas of the codebook or of a file beside it; None for none.

    columns: of a CSV file or a spreadsheet, as `roles_of_columns` has them
    pending: attributes that need no values, as they are given some later
    """
    from rpexplore.domain.area_codebook import names_areas
    from rpexplore.domain.domain import Domain

    if areas is None and not names_areas(codebook):
        if level_names or separator is not None or lengths or recode_areas:
            raise WorkloadError(
                "--level-names, --separator, --lengths and --recode-areas go with --areas FILE."
            )
        return None, Domain.load(codebook, resource, columns, encoding, language, pending)
    given = level_names, separator, lengths, recode_areas or []
    if areas is not None:
        domain = Domain.load(codebook, resource, columns, encoding, language, pending)
        return area_options.tree_from_options(areas, *given), domain
    if encoding is not None or columns is not None:
        raise WorkloadError(
            "A codebook that names areas is JSON in UTF-8; leave --encoding and --map out."
        )
    return area_options.areas_of_codebook(codebook, *given)


def roles_of_columns(columns: str | None) -> dict[str, str] | None:
    """The columns of a codebook by what they are, as `Domain.load` takes them.

    columns: as typed, "attribute=Variable,code=Code", or of a codebook with one row an attribute
        "name=Variable,values=Codes"
    """
    if columns is None:
        return None
    roles: dict[str, str] = {}
    for text in columns.split(","):
        role, sign, column = text.partition("=")
        role = {"code": "value"}.get(role.strip().lower(), role.strip().lower())
        is_known = role in (*ROLES, *ROLES_OF_VARIABLES) and role not in roles
        if not (is_known and sign and column.strip()):
            raise WorkloadError(
                "--map must name columns as attribute=…, code=…, label=… and group=…, or of one "
                "row an attribute as name=…, values=…, type=…, label=… and missing=…, each once, "
                f"separated by commas, got {text!r}."
            )
        roles[role] = column.strip()
    if roles.keys() <= {*ROLES_OF_VARIABLES} and roles.keys() >= VARIABLES:
        return roles
    if not {"attribute", "value"} <= roles.keys() <= {*ROLES}:
        raise WorkloadError(
            "--map must name the columns attribute and code, or of one row an attribute name and "
            f"values, got {', '.join(roles)}."
        )
    return roles


def levels_shown(tree: "AreaTree | None") -> tuple[dict[str, Any] | None, str]:
    """How many areas each level has, and into how many parts they fall: facts, and text."""
    if tree is None:
        return None, ""
    from rpexplore.analysis.area_levels import level_sizes
    from rpexplore.cli.facts import level_table, note_on_depth, row_facts

    sizes, note = level_sizes(tree), note_on_depth(tree)
    about = (tree.empty_text, tree.recodes_text, note)
    texts = (level_table(sizes), plural(tree.n_areas, "area"), *about)
    facts = {"areas": tree.n_areas, "levels": row_facts(sizes), "note": note}
    facts["empty_areas"] = tree.n_all - tree.n_areas
    facts["recoded_areas"] = 0 if tree.recodes is None else len(tree.recodes)
    return facts, "\n\n".join(filter(None, texts))


def attribute_facts(domain: "Domain", layout: "RecordLayout | None" = None) -> list[dict[str, Any]]:
    """Each attribute in plain values, with the labels of its first values.

    layout: of records of fixed width, where the codebook has one
    """
    places = {} if layout is None else layout.by_name
    return [
        {
            "name": attribute.name,
            "label": attribute.label,
            "kind": _KINDS[type(attribute.values).__name__],
            "values": None if isinstance(attribute.values, Amounts) else attribute.size,
            "levels": [
                {"name": level.name, "groups": len(level.labels)} for level in attribute.all_levels
            ],
            "first_values": [attribute.values.description]
            if isinstance(attribute.values, Amounts)
            else attribute.labels(_FIRST_VALUES),
            **({"positions": places[attribute.name].text} if attribute.name in places else {}),
        }
        for attribute in domain.attributes
    ]


def attribute_table(domain: "Domain", layout: "RecordLayout | None" = None) -> str:
    """The attributes as a text table; layout: as of `attribute_facts`."""
    facts = attribute_facts(domain, layout)
    for fact in facts:
        more = ["…"] if (fact["values"] or 0) > _FIRST_VALUES else []
        fact["first values"] = ", ".join([*fact["first_values"], *more])
        fact["values"] = "–" if fact["values"] is None else f"{fact['values']:,}"
        levels = [f"{level['name']} ({level['groups']:,})" for level in fact["levels"]]
        fact["levels"] = ", ".join(levels)
    names = ["name", "label", "kind", "values", "first values"]
    if any(fact["levels"] for fact in facts):
        names.insert(4, "levels")
    if layout is not None:
        names.insert(1, "positions")
    columns = {name: [fact.get(name, "") for fact in facts] for name in names}
    return text_table(columns, "".join(">" if name == "values" else "<" for name in names))
