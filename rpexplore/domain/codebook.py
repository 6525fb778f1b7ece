"""Codebook files: Frictionless Table Schema JSON, to and from attributes."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown, shown_few, shown_value, whole_number
from rpexplore.domain.amounts import WEIGHT_DECIMALS, Amounts
from rpexplore.domain.attribute import MAX_ATTRIBUTES, MISSING, Attribute, Values
from rpexplore.domain.categories import Categories
from rpexplore.domain.codebook_properties import (
    CONSTRAINTS,
    FIELD,
    FORMAT_OF_NUMBERS,
    refuse_what_is_said,
)
from rpexplore.domain.dates import YEAR_AND_MONTH, stated_limit
from rpexplore.domain.levels import MOST_GROUPED, levels_from_json
from rpexplore.domain.ordered_values import NOT_STATED, Bins, Dates, Integers, Numbers
from rpexplore.domain.recodes import recode_of_field, recoded
from rpexplore.errors import DomainError

# Table Schema (https://specs.frictionlessdata.io/table-schema/): `constraints.enum` with optional
# `categories` (value and label), `constraints.minimum`/`maximum` for integers and dates. The
# `missingValues` of a field with categories are values as well, in a group of their own; those of a
# field with numbers or dates are counted in a cell behind them, one for each label. A Data Package
# holds a schema, sizes such as {"age": 32} stand for one. Six properties are this project's own,
# since the specification has none for them: `constraints.step` groups integers and dates, `bins`
# lists the edges of intervals, `groups` the path of groups that each value lies in, `spellings` for
# each value the other texts that records have for it, `recode` the same the other way round. So are
# the limits of amounts, `bounds`, with their `unit` and `decimals`, and whether they are survey
# `weights`. One more, `impossible`, belongs to the schema: see `Domain.from_schema`. What becomes
# of all properties is in `codebook_properties`.


_MOST_MISSING = 1_000  # values for the whole table; programs know a few
WHOLE = ("integer", "year")  # types whose minimum and maximum say all values
DATES = ("date", "datetime", "yearmonth")  # the same for days
CONSTRAINTS_OF_VALUES = (
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "step",
)


def attributes_from_schema(schema: Any, *, may_be_empty: bool = False) -> list[Attribute]:
    """The attributes a Table Schema object describes.

    Raises `DomainError` naming the field that cannot be used, and, unless it may be empty, for a
    schema without fields.
    """
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list) or not (fields or may_be_empty):
        raise DomainError('A Table Schema must be an object with a filled list "fields".')
    check_number(len(fields))
    with refusing(DomainError, "The schema"):
        of_all = missing_values(schema)
        if len(of_all) > _MOST_MISSING:  # each is looked for in each field
            raise DomainError(
                f'"missingValues" of the whole table can be {_MOST_MISSING:,} at most, got '
                f"{len(of_all):,}; state them in the fields that have them."
            )
    attributes, n_grouped = [], 0
    for number, field in enumerate(fields, start=1):
        attributes.append(attribute_from_field(field, number, of_all))
        n_grouped += len(attributes[-1].levels) * attributes[-1].size
        if n_grouped > MOST_GROUPED:
            raise DomainError(
                f"The levels of a codebook can group {MOST_GROUPED:,} values, counted for each "
                "level, and there are more; leave out levels that no table will have."
            )
    return attributes


def schema_from_attributes(attributes: Iterable[Attribute]) -> dict[str, Any]:
    """The Table Schema object of the attributes; `attributes_from_schema` undoes it exactly."""
    return {
        "fields": [_field_from_attribute(attribute) for attribute in attributes if not attribute.of]
    }


def check_number(n_attributes: int) -> None:
    if n_attributes > MAX_ATTRIBUTES:
        raise DomainError(
            f"A codebook can have at most {MAX_ATTRIBUTES:,} attributes, got more; leave out those "
            "that no table will have."
        )


def attribute_from_field(field: Any, number: int, missing_in_all: dict[str, str]) -> Attribute:
    if not has_name(field):
        raise DomainError(f'Field {number} of the schema must be an object with a text "name".')
    name = field["name"]
    label = field.get("title", "")
    if not isinstance(label, str):
        raise DomainError(
            f'The "title" of field {name!r} must be a text, got {shown_value(label)}.'
        )
    groups = field.get("groups", ())
    with refusing(DomainError, f"Attribute {name!r}"):
        refuse_what_is_said(field, FIELD)
        values = _values_from_field(field)
        _check_honoured(values, field)
        missing = missing_values(field)
        if isinstance(values, Categories):
            empty = [said for value, said in missing.items() if said and not value.strip()]
            if empty:
                label = shown(empty[0])
                raise DomainError(
                    f"its empty value, for what is missing, has the label {label!r}, and "
                    "values that are listed have none that is empty; list the value "
                    f"{label!r} in constraints.enum and have missing values counted as it "
                    f"(--missing-values '{shown(name)}={label}'), or leave the label out."
                )
            listed = {value: label for value, label in missing.items() if value.strip()}
            if listed:
                values, groups = _with_missing(values, listed, groups)
        else:
            if "missingValues" not in field:  # then those of the whole table are this field's
                missing = {
                    value: label for value, label in missing_in_all.items() if values.holds(value)
                }
            values, groups = _with_cells(values, missing, groups)
        if "recode" in field:
            values = recoded(values, recode_of_field(field["recode"]))
        levels = levels_from_json(field.get("levels", {}), values)
    return Attribute(name, values, label, groups, levels)


def _values_from_field(field: dict[str, Any]) -> Values:
    if "areas" in field:
        raise DomainError(
            "its values are areas in areas; tables in these are planned by `rpexplore plan`, "
            "or in Python with AreaCodebook.load. Leave the field out for other tables."
        )
    constraints = field.get("constraints", {})
    if not isinstance(constraints, dict):
        raise DomainError('"constraints" must be an object.')
    refuse_what_is_said(constraints, CONSTRAINTS)
    if "bins" in field and not isinstance(field["bins"], list):
        raise DomainError(f'"bins" must be a list of edges, got {shown_value(field["bins"])}.')
    is_listed = field.get("categories") is not None or constraints.get("enum") is not None
    if "bounds" in field:
        return _amounts(field, constraints)
    if field.get("weights"):
        raise DomainError(
            'it has weights without limits; give it "bounds", such as [0, 40], the largest weight '
            "chosen without a look at the records."
        )
    if field.get("type") in DATES and not is_listed:
        return _dates(field, constraints)
    if "bins" in field:
        edges = tuple(field["bins"])
        have_whole = all(whole_number(edge) is not None for edge in edges)
        return Bins(edges, are_whole=have_whole and field.get("type") in WHOLE)
    if is_listed or field.get("type") == "boolean":
        return _categories(field, constraints.get("enum"))
    if is_range(constraints):
        if field.get("type", "integer") not in WHOLE:
            raise DomainError(
                f"minimum and maximum describe values of type integer, year or date, got "
                f'{field["type"]!r}; give "bins" for other numbers.'
            )
        limits = {name: _plain_whole(value) for name, value in constraints.items()}
        for name in ("exclusiveMinimum", "exclusiveMaximum"):
            if name in limits and whole_number(limits[name]) is None:
                raise DomainError(
                    f"its {name} must be a whole number, got {shown_value(limits[name])}."
                )
        # Where a limit is stated in both ways, both hold.
        minimum: Any = limits.get("minimum")
        maximum: Any = limits.get("maximum")
        if "exclusiveMinimum" in limits:
            low = limits["exclusiveMinimum"] + 1
            minimum = low if whole_number(minimum) is None else max(low, minimum)
        if "exclusiveMaximum" in limits:
            high = limits["exclusiveMaximum"] - 1
            maximum = high if whole_number(maximum) is None else min(high, maximum)
        return Integers(minimum, maximum, _plain_whole(_step_of(field, 1)))
    raise DomainError(
        "its values are not known; give constraints.enum, constraints.minimum and maximum (for "
        "integers and dates), bins, or bounds (for amounts that are summed)."
    )


def _amounts(field: dict[str, Any], constraints: dict[str, Any]) -> Amounts:
    """The amounts of a field with bounds."""
    others = [name for name in ("bins", "categories", "levels", "groups") if field.get(name)]
    others += [f"constraints.{name}" for name in CONSTRAINTS_OF_VALUES if name in constraints]
    if others:
        raise DomainError(
            f"its bounds say that it has amounts, and these have no {others[0]}; leave one of the "
            "two out."
        )
    if field.get("type", "number") not in ("number", "integer"):
        raise DomainError(
            f"its bounds are for amounts, of type number, got {shown_value(field['type'])}; leave "
            "one of them out."
        )
    bounds = field["bounds"]
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise DomainError(
            f"its bounds must be the lowest and the highest amount, such as [0, 200000], got "
            f"{shown_value(bounds)}."
        )
    minimum, maximum = bounds
    are_weights = field.get("weights", False)
    if not isinstance(are_weights, bool):
        raise DomainError(
            f'its "weights" must be true or false, got {shown_value(are_weights)}; write true for '
            "survey weights."
        )
    decimals = field.get("decimals", WEIGHT_DECIMALS if are_weights else 0)
    return Amounts(minimum, maximum, decimals, field.get("unit", ""), are_weights=are_weights)


def _dates(field: dict[str, Any], constraints: dict[str, Any]) -> Dates:
    """The days of a field of type date, datetime or yearmonth."""
    form = field.get("format")
    if form == "any":
        raise DomainError(
            'its format "any" leaves open which day a text is; write it as "%d/%m/%Y", say.'
        )
    if form in (None, "default"):
        form = YEAR_AND_MONTH if field["type"] == "yearmonth" else ""
    if "bins" in field:
        return Dates(edges=tuple(field["bins"]), format=form)
    limits: dict[bool, list[date]] = {True: [], False: []}
    for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if name in constraints:
            is_lower, is_exclusive = name.endswith("inimum"), name.startswith("exclusive")
            with refusing(DomainError, f"Its {name} cannot be used"):
                day = stated_limit(constraints[name], is_lower=is_lower, is_exclusive=is_exclusive)
            limits[is_lower].append(day)
    if not limits[True] or not limits[False]:
        raise DomainError(
            "its days are not known; give constraints.minimum and maximum, or bins with the days "
            "on which groups begin and the last day."
        )
    usual = "month" if field["type"] == "yearmonth" else "day"
    # Where a limit is stated in both ways, both hold.
    return Dates(max(limits[True]), min(limits[False]), _step_of(field, usual), (), form)


def _step_of(field: dict[str, Any], otherwise: Any) -> Any:
    return field.get("constraints", {}).get("step", field.get("step", otherwise))


def is_range(constraints: Mapping[str, Any]) -> bool:
    """Whether both ends of a range are stated."""
    ends = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
    return all(any(name in constraints for name in names) for names in ends)


def _check_honoured(values: Values, field: dict[str, Any]) -> None:
    """Raise `DomainError` for what a field says beside its values, where these do not agree."""
    is_text = isinstance(values, Categories) and not values.are_numbers
    if isinstance(values, Dates):
        _check_edges_of_dates(values, field)
        return
    if not is_text or field.get("type") in (*WHOLE, "boolean"):
        refuse_what_is_said(field, {"format": FORMAT_OF_NUMBERS})
    if isinstance(values, Integers | Amounts):
        return
    if _step_of(field, None) is not None:
        raise DomainError(
            "its step is for whole numbers from a minimum to a maximum; leave it out."
        )
    answers = [] if isinstance(values, Bins) else [*values.values]
    answers = [value for value in answers if value not in missing_values(field)]
    for name, stated in field.get("constraints", {}).items():
        is_lower = name.endswith("inimum")
        if not is_lower and not name.endswith("aximum"):
            continue
        limit = _limit(stated)
        if isinstance(values, Bins):
            ends: list[Any] = [values.edges[0 if is_lower else -1]]
        else:
            ends = answers
        for end in map(_limit, ends):
            if type(end) is not type(limit):
                agrees = False
            elif name.startswith("exclusive"):
                agrees = limit < end if is_lower else limit > end
            else:
                agrees = limit <= end if is_lower else limit >= end
            if not agrees:
                what = "bins reach" if isinstance(values, Bins) else "values go"
                raise DomainError(
                    f"its {what} beyond its {name} {shown_value(stated)}; make the two agree, or "
                    "leave the limit out."
                )


def _check_edges_of_dates(values: Dates, field: dict[str, Any]) -> None:
    """Raise `DomainError` where edges and limits or a step of dates do not agree."""
    if not values.edges:
        return
    if _step_of(field, None) is not None:
        raise DomainError("its days have bins and a step; leave one of them out.")
    for name, stated in field.get("constraints", {}).items():
        is_lower = name.endswith("inimum")
        if is_lower or name.endswith("aximum"):
            is_exclusive = name.startswith("exclusive")
            limit = stated_limit(stated, is_lower=is_lower, is_exclusive=is_exclusive)
            if limit > values.first if is_lower else limit < values.last:
                raise DomainError(
                    f"its bins reach beyond its {name} {shown_value(stated)}; make the two agree, "
                    "or leave the limit out."
                )


def _limit(value: Any) -> Any:
    """A limit or a value as a number, else as the text that it is (a date: 2026-01-31)."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)


def _plain_whole(value: Any) -> Any:
    """The whole number that a text or a float such as 1.0 is; anything else as it is."""
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", value):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _categories(field: dict[str, Any], enum: Any) -> Categories:
    """The values that are listed; those of a boolean as the field spells them."""
    listed = field.get("categories")
    if enum is not None and not isinstance(enum, list):
        raise DomainError(f'"enum" must be a list, got {shown_value(enum)}.')
    if listed is not None and not isinstance(listed, list):
        raise DomainError(f'"categories" must be a list, got {shown_value(listed)}.')
    are_numbers = field.get("type") == "number"
    spelled = _true_and_false(field) if field.get("type") == "boolean" else {}
    main = {text: texts[0] for texts in spelled.values() for text in texts}

    def value_of(item: Any) -> str:
        text = _text(item, are_numbers=are_numbers)
        if isinstance(item, bool) and item in spelled:
            return spelled[item][0]
        return main.get(text, text)

    labels: dict[str, str] = {}
    for item in listed or []:
        fields = item if isinstance(item, dict) else {"value": item}
        value = value_of(fields.get("value", ""))
        if value in labels:
            raise DomainError(f"The category {value!r} is listed twice; keep one of them.")
        labels[value] = _text(fields.get("label", value)) or value
    if enum is not None:
        values = [value_of(value) for value in enum]
    elif listed is None:
        values = [texts[0] for texts in spelled.values()]
    else:
        values = list(labels)
    strangers = labels.keys() - set(values)
    if strangers:
        raise DomainError(
            f"The category {min(strangers)!r} is not in constraints.enum; add it there."
        )
    others = {texts[0]: tuple(texts[1:]) for texts in spelled.values()}
    spellings = field.get("spellings", [others.get(value, ()) for value in values])
    if not isinstance(spellings, list) or not all(
        isinstance(one, list | tuple) for one in spellings
    ):
        raise DomainError(
            f'"spellings" must be a list of texts for each value, got {shown_value(spellings)}.'
        )
    return Categories(
        tuple(values),
        tuple(labels.get(value, value) for value in values),
        tuple(map(tuple, spellings)),
        are_numbers,
    )


def _true_and_false(field: dict[str, Any]) -> dict[bool, list[str]]:
    """What true and false are written like; the first one is the value.

    The usual spellings need not be listed, where the field says nothing of either.
    """
    names, spelled = {True: "trueValues", False: "falseValues"}, {}
    is_stated = any(name in field for name in names.values())
    for truth, name in names.items():
        usual = [value := str(truth).lower(), value.title(), value.upper(), str(int(truth))]
        listed = field.get(name, usual if is_stated else usual[:1])
        if not isinstance(listed, list) or not listed:
            raise DomainError(f'"{name}" must be a list of texts, got {shown_value(listed)}.')
        spelled[truth] = [_text(text) for text in listed]
    return spelled


def missing_values(field: dict[str, Any]) -> dict[str, str]:
    """{value: label} of what the field itself says to stand for no answer; "" for no label."""
    listed = field.get("missingValues", [])
    if not isinstance(listed, list):
        raise DomainError(f'"missingValues" must be a list, got {shown_value(listed)}.')
    items = [item if isinstance(item, dict) else {"value": item} for item in listed]
    return {_text(item.get("value", "")): _text(item.get("label", "")) for item in items}


def _with_missing(
    values: Categories, missing: dict[str, str], groups: Any
) -> tuple[Categories, Any]:
    """The values with those that stand for no answer behind, in the group `MISSING`.

    Groups that the field states are kept, and cover all of its values.
    """
    labels = dict(zip(values.values, values.labels, strict=True))
    added = {value: label or value for value, label in missing.items() if value not in labels}
    if groups and added:
        raise DomainError(
            f"its missingValues {shown_few(list(added))} are in no group; list them in "
            "constraints.enum and groups, too, or leave them out."
        )
    labels |= added
    paths = [(MISSING,) if value in missing else () for value in labels]
    spellings = values.spellings and (*values.spellings, *[()] * len(added))
    listed = Categories(tuple(labels), tuple(labels.values()), spellings, values.are_numbers)
    return listed, groups or paths


def _with_cells(
    values: Integers | Bins | Dates | Amounts, missing: dict[str, str], groups: Any
) -> tuple[Integers | Bins | Dates | Amounts, Any]:
    """The numbers with the cells for missing ones behind, in the group `MISSING` if others are."""
    pairs = tuple((value, label or NOT_STATED) for value, label in missing.items())
    values = replace(values, missing=pairs)
    if isinstance(groups, list) and groups and len(groups) == values.n_ordered:
        groups = [*groups, *([(MISSING,)] * len(values.missing_labels))]
    return values, groups


def _text(value: Any, *, are_numbers: bool = False) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if are_numbers and isinstance(value, float) and math.isfinite(value):
        return f"{Decimal(repr(value)).normalize():f}"
    value = value if isinstance(value, str) else _plain_whole(value)
    if isinstance(value, str | int):
        return str(value)
    raise DomainError(f"A category must be a text or a whole number, got {shown_value(value)}.")


def _field_from_attribute(attribute: Attribute) -> dict[str, Any]:
    field: dict[str, Any] = {"name": attribute.name}
    if attribute.label:
        field["title"] = attribute.label
    values = attribute.values
    if isinstance(values, Categories):
        kind = "number" if values.are_numbers else "string"
        field |= {"type": kind, "constraints": {"enum": list(values.values)}}
        if values.labels != values.values:
            field["categories"] = [
                {"value": value, "label": label}
                for value, label in zip(values.values, values.labels, strict=True)
            ]
        if values.spellings:
            field["spellings"] = [list(texts) for texts in values.spellings]
    elif isinstance(values, Integers):
        constraints = {"minimum": values.minimum, "maximum": values.maximum}
        if values.step != 1:
            constraints["step"] = values.step
        field |= {"type": "integer", "constraints": constraints}
    elif isinstance(values, Dates):
        field["type"] = "yearmonth" if values.format == YEAR_AND_MONTH else "date"
        if values.format not in ("", YEAR_AND_MONTH):
            field["format"] = values.format
        if values.edges:
            field["bins"] = [edge.isoformat() for edge in values.edges]
        else:
            limits = {"minimum": values.first.isoformat(), "maximum": values.last.isoformat()}
            if field["type"] == "yearmonth":
                limits = {name: day[:7] for name, day in limits.items()}
            field["constraints"] = limits | {"step": values.step}
    elif isinstance(values, Amounts):
        # As texts: a decimal such as 0.1 is no number of JSON in all programs.
        field |= {"type": "number", "bounds": [str(values.minimum), str(values.maximum)]}
        field |= {"decimals": values.decimals}
        if values.unit:
            field["unit"] = values.unit
        if values.are_weights:
            field["weights"] = True
    else:
        edges = [int(edge) if edge.is_integer() else edge for edge in values.edges]
        field |= {"type": "integer" if values.are_whole else "number", "bins": edges}
    if isinstance(values, Numbers) and values.missing:
        field["missingValues"] = [
            {"value": value, "label": label} for value, label in values.missing
        ]
    if isinstance(values, Numbers) and values.recode:
        field["recode"] = dict(values.recode)
    if attribute.groups:
        field["groups"] = [list(path) for path in attribute.groups]
    if attribute.levels:
        field["levels"] = {level.name: list(level.groups) for level in attribute.levels}
    return field


def has_name(field: Any) -> bool:
    return isinstance(field, dict) and isinstance(field.get("name"), str)
