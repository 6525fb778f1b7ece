"""What each property of the codebook formats that are read becomes: read, refused, or no matter.

A codebook says which values records can have and how they are written. What is read below is
honoured, wherever the file says it. What would have to be honoured, and cannot be, is refused by
name, with the remedy. All else says nothing of what a value of a record means. Properties that are
in none of these lists are the file's own, and no matter either.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rpexplore.common.numbers import shown_value
from rpexplore.errors import DomainError

READ = "read"


@dataclass(frozen=True)
class Refused:
    """A property that is refused.

    remedy  what to do instead
    unless  what it may say all the same, since records are read like that
    """

    remedy: str
    unless: tuple[Any, ...] = ()


@dataclass(frozen=True)
class NoMatter:
    """A property that does not change what a value of a record means."""

    reason: str


Fate = str | Refused | NoMatter

_TEXT = NoMatter("it describes, for people")
_LISTED = NoMatter("all values are listed, or lie in a range")
_RECORDS = NoMatter("it compares records with each other, and a value stays what it is")
_PLACE = NoMatter("it says where records are, which are named with the plan")
_SHOWN = NoMatter("it says how values are shown")

# https://specs.frictionlessdata.io/table-schema/ and https://datapackage.org/standard/table-schema/
SCHEMA: Mapping[str, Fate] = {
    "fields": READ,
    "missingValues": READ,
    "impossible": READ,
    **dict.fromkeys(("$schema", "name", "title", "description", "profile"), _TEXT),
    **dict.fromkeys(("primaryKey", "uniqueKeys", "foreignKeys"), _RECORDS),
    "fieldsMatch": NoMatter("columns are found by their names"),
}
FIELD: Mapping[str, Fate] = {
    **dict.fromkeys(("name", "title", "type", "constraints", "categories"), READ),
    **dict.fromkeys(("missingValues", "trueValues", "falseValues"), READ),
    **dict.fromkeys(("bins", "groups", "levels", "areas", "step"), READ),  # our own,
    **dict.fromkeys(("spellings", "recode"), READ),
    **dict.fromkeys(("bounds", "unit", "decimals", "weights"), READ),  # and of amounts
    "decimalChar": Refused(
        "write the numbers of the records with a point, and leave it out", (".",)
    ),
    "groupChar": Refused(
        "write the numbers of the records without marks between groups of digits, and leave it out",
        ("", None),
    ),
    "bareNumber": Refused(
        "write the numbers of the records without units, and leave it out", (True,)
    ),
    **dict.fromkeys(("description", "example", "rdfType"), _TEXT),
    "format": READ,  # of dates; texts are compared as they are listed
    "categoriesOrdered": NoMatter("values are in the order of their list"),
}
FORMAT_OF_NUMBERS = Refused("write plain numbers, and leave it out", ("default",))
"""The property format where values are numbers."""
CONSTRAINTS: Mapping[str, Fate] = {
    **dict.fromkeys(("enum", "minimum", "maximum", "step"), READ),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), READ),
    "required": NoMatter("a missing value is refused in any case, or counted as you say"),
    "unique": _RECORDS,
    **dict.fromkeys(("pattern", "minLength", "maxLength", "jsonSchema"), _LISTED),
}
RESOURCE: Mapping[str, Fate] = {
    **dict.fromkeys(("schema", "name"), READ),
    **dict.fromkeys(("path", "data", "type", "scheme", "format", "mediatype"), _PLACE),
    **dict.fromkeys(("bytes", "hash", "compression", "innerpath", "profile", "$schema"), _PLACE),
    **dict.fromkeys(("title", "description", "sources", "licenses", "homepage"), _TEXT),
    "encoding": NoMatter("records are UTF-8, and others are refused"),
    "dialect": NoMatter("records in CSV have commas and a line of names, and others are refused"),
}

# The paths of elements within `var`, and of their attributes.
DDI: Mapping[str, Fate] = {
    **dict.fromkeys(("@name", "@ID", "@wgt", "labl", "varFormat@type", "invalrng"), READ),
    **dict.fromkeys(("catgry", "catgry@missing", "catgry/catValu", "catgry/labl"), READ),
    **dict.fromkeys(("invalrng/item@VALUE", "invalrng/range@min", "invalrng/range@max"), READ),
    **dict.fromkeys(("invalrng/range@minExclusive", "invalrng/range@maxExclusive"), READ),
    "valrng": NoMatter("many programs write there what occurs in the records"),
    "@dcml": _SHOWN,
    **dict.fromkeys(("varFormat@schema", "varFormat@formatname", "varFormat@category"), _SHOWN),
    **dict.fromkeys(("catgry/catStat", "sumStat", "TotlResp"), NoMatter("it is of the records")),
    **dict.fromkeys(("catgry@ID", "catgryGrp@catgry", "catgryGrp@catGrp"), READ),
    **dict.fromkeys(("catgryGrp@ID", "catgryGrp@missing", "catgryGrp/labl"), READ),
    "catgryGrp@levelno": NoMatter("which group is in which follows from their categories"),
    **dict.fromkeys(("catgry@level", "labl@level"), _TEXT),
    **dict.fromkeys(("qstn", "universe", "concept", "notes", "txt", "codInstr", "security"), _TEXT),
    **dict.fromkeys(("imputation", "derivation", "respUnit", "anlysUnit", "embargo"), _TEXT),
    "@intrvl": _SHOWN,
    "location": _PLACE,
}

# As pyreadstat tells of a file of SPSS, Stata or SAS.
STATISTICS: Mapping[str, Fate] = {
    **dict.fromkeys(("column_names", "column_labels", "variable_value_labels"), READ),
    **dict.fromkeys(("original_variable_types", "readstat_variable_types"), READ),
    **dict.fromkeys(("missing_ranges", "number_rows"), READ),
    "missing_user_values": NoMatter("they are letters, known by that and by their labels"),
    **dict.fromkeys(("value_labels", "variable_to_label", "column_names_to_labels"), READ),
    **dict.fromkeys(("variable_alignment", "variable_display_width", "variable_measure"), _SHOWN),
    **dict.fromkeys(("variable_storage_width", "original_variable_informats"), _SHOWN),
    **dict.fromkeys(("file_label", "notes", "table_name", "mr_sets", "number_columns"), _TEXT),
    **dict.fromkeys(("creation_time", "modification_time", "file_encoding"), _TEXT),
}

CSV: Mapping[str, Fate] = {
    **dict.fromkeys(("attribute", "value", "label", "group"), READ),
    **dict.fromkeys(
        ("type", "minimum", "maximum", "step", "bins", "bounds", "missing", "spellings", "recode"),
        Refused("a CSV codebook lists categories alone; save it as JSON, or leave the column out"),
    ),
    **dict.fromkeys(("description", "note"), _TEXT),
}


def refuse_what_is_said(stated: Mapping[str, Any], fates: Mapping[str, Fate]) -> None:
    """Raise `DomainError` for a property that is refused for what it says."""
    for name, fate in fates.items():
        if not isinstance(fate, Refused) or name not in stated:
            continue
        # (1 equals True, and is none of it.)
        said = [(type(accepted), accepted) for accepted in fate.unless]
        if (type(stated[name]), stated[name]) not in said:
            raise DomainError(
                f"its {name} {shown_value(stated[name])} cannot be honoured; {fate.remedy}."
            )
