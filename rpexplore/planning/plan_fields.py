"""What the fields of plan files are, declared once: kinds of values, and what several parts have.

Each part declares its own fields beside its reader; `planning.schema` makes of all of them the JSON
Schema that is published with the library.
"""

from typing import Any

Schema = dict[str, Any]

# ---- kinds of values


def of_type(kind: str | list[str], meaning: str = "", **limits: Any) -> Schema:
    """A value of a JSON type within limits. All kinds of values below are made of it."""
    described = {"description": meaning} if meaning else {}
    return {**described, "type": kind, **limits}


def record(meaning: str = "", /, **fields: Schema) -> Schema:
    """An object with exactly these keys, in this order."""
    return of_type(
        "object",
        meaning,
        properties=fields,
        required=list(fields),
        additionalProperties=False,
    )


def rows(items: Schema, meaning: str = "", **limits: Any) -> Schema:
    """A list of such items."""
    return of_type("array", meaning, items=items, **limits)


def above_0(meaning: str = "") -> Schema:
    """A number above 0."""
    return of_type("number", meaning, exclusiveMinimum=0)


def above_0_or_null(meaning: str) -> Schema:
    """A number above 0, or null."""
    return of_type(["number", "null"], meaning, exclusiveMinimum=0)


def at_least_0(meaning: str = "") -> Schema:
    """A number of at least 0."""
    return of_type("number", meaning, minimum=0)


def index(meaning: str = "") -> Schema:
    """A whole number that counts from 0."""
    return of_type("integer", meaning, minimum=0)


def name(meaning: str = "") -> Schema:
    """A text that is not empty."""
    return of_type("string", meaning, minLength=1)


def sha256(meaning: str) -> Schema:
    """A SHA-256, in hexadecimal."""
    return of_type("string", meaning, pattern="^[0-9a-f]{64}(?!\\n)$")


def const(value: Any, meaning: str = "") -> Schema:
    """This value."""
    return {"description": meaning, "const": value} if meaning else {"const": value}


def one_of(*kinds: Schema, meaning: str = "") -> Schema:
    """A value of exactly one of these kinds."""
    return {"description": meaning, "oneOf": list(kinds)}


def ref(definition: str, meaning: str = "") -> Schema:
    """What `DEFINITIONS`, or a part, is by this name."""
    described = {"description": meaning} if meaning else {}
    return {**described, "$ref": f"#/$defs/{definition}"}


def exact(meaning: str = "") -> Schema:
    """The text of an exact positive number."""
    return ref("exact_number", meaning)


def keys(fields: Schema, field: str | None = None) -> tuple[str, ...]:
    """The keys of a `record`, or of the one that is a field of it, in order."""
    return tuple((fields if field is None else fields["properties"][field])["properties"])


# ---- what several parts have


def domain(meaning: str) -> Schema:
    """The attributes, and combinations of their values that no record has, where there are any."""
    return record(meaning, fields=rows(ref("field"), minItems=1), impossible=ref("impossible")) | {
        "required": ["fields"]
    }


def certificate(value: str, of_value: Schema, meaning: str, **more: Schema) -> Schema:
    """A loss, under the key `value`, the bound that is proven, and how far they are apart."""
    return record(
        meaning,
        **{value: of_value},
        lower_bound=above_0("The proven bound, in the unit of the loss."),
        gap=at_least_0(f"{value} / lower_bound - 1, and 0 if that is negative."),
        **more,
    )


LOSS_VALUE = above_0(
    "The loss of this plan: a variance of counts, or a ratio of variances where the loss is"
    " relative to targets."
)
BUDGET = ref("budget", "The share of the budget that this part may cost, and whom it protects.")
BASES = rows(
    ref("attribute_bases"),
    "The bases in which tables have each attribute; empty where the total is the only table.",
)
STRATEGIES = rows(
    ref("strategy"),
    "How attributes are measured that tables have in other bases than single values.",
)
RESIDUAL_STRATEGIES = rows(
    record(
        residual=index("Its number, from 0, under residuals."),
        attribute=name("One of its attributes."),
        matrix=rows(rows(of_type("integer"), minItems=3), minItems=2),
    ),
    "What is measured of an attribute in one residual, if not what strategies says; over the same "
    "power of two, and at right angles to the same reference distribution, a multiple of 2 to "
    "the power of -12. By residual, then by attribute. Left out where there are none.",
    minItems=1,
)
BLOCK_STRATEGIES = rows(
    record(
        block=index(
            "Its number, from 0: by attribute, level and group of the level before, of the "
            "attributes that tables have at several levels."
        ),
        bits=of_type("integer", minimum=0, maximum=20),
        matrix=rows(rows(of_type("integer"), minItems=2), minItems=1),
    ),
    "How the groups that a group splits into are measured, where they get unequal shares of it; as "
    "in strategies. Only where an attribute is in tables at several levels.",
)
RECORD_PRICES = rows(
    at_least_0(),
    "For each kind of record, by the blocks that its values lie in, its price in the proof: they "
    "sum to 1. Only where an attribute is in tables at several levels, so that kinds differ.",
)
WEIGHT = above_0("How much the table counts in the loss, relative to others.")
TARGET = above_0_or_null("Wanted standard error of every cell, in records; null: none.")
REQUIRED = of_type("boolean", "Whether a plan has to meet the target.")
BASIS_INDEX = rows(
    index(),
    "The basis in which the table has each of its attributes: its number, from 0, in the "
    "attribute's list under bases.",
)
ATTRIBUTES = rows(
    index(),
    "Numbers of attributes in the domain, from 0, ascending; none is the total.",
    uniqueItems=True,
)
_WEIGHTING = {"enum": ["equal", "cells", "sqrt"]}
_RELATIVE_TO = {"enum": ["weight", "target"]}
_MISSING_VALUES = rows(
    record(value=of_type("string"), label=of_type("string")),
    "What stands for no answer in the records; values with one label share a cell, behind the "
    "numbers.",
    minItems=1,
)

_RECODE = {
    "description": "Texts of the records, and the number or day that each is counted as.",
    "type": "object",
    "minProperties": 1,
    "additionalProperties": of_type("string"),
}

LOSSES = {
    "sum_of_variances": record(
        "Sum over tables of weight times scheme times mean variance of a cell, with "
        "scheme 1 (equal), the number of cells (cells) or its square root (sqrt).",
        kind=const("sum_of_variances"),
        weighting=_WEIGHTING,
    ),
    "max_variance": record(
        "Largest variance of any cell times its table's weight, or divided by the squared target.",
        kind=const("max_variance"),
        relative_to=_RELATIVE_TO,
    ),
    "sum_within_targets": record(
        "Required targets are met, each by its table's least accurate cell; of the "
        "other tables (of all, if all targets are required) the sum as in "
        "sum_of_variances.",
        kind=const("sum_within_targets"),
        weighting=_WEIGHTING,
    ),
    "max_within_targets": record(
        "Required targets are met; of the other tables (of all, if all targets are "
        "required) the largest variance of any cell divided by the squared target.",
        kind=const("max_within_targets"),
    ),
    "sum_with_bounded_max": record(
        "The sum as in sum_of_variances, with weight times the variance of any cell at "
        "most the certificate's limit: (1 + slack) squared times the smallest possible "
        "maximum.",
        kind=const("sum_with_bounded_max"),
        weighting=_WEIGHTING,
        slack=of_type("number", minimum=1e-06, maximum=1000000.0),
    ),
    "p_norm": record(
        ("The p-norm of the tables' mean variances times weight, or over the squared target."),
        kind=const("p_norm"),
        p=of_type("number", minimum=1, maximum=1000),
        relative_to=_RELATIVE_TO,
    ),
    "custom": record(
        "A custom loss, of which only the name is known here: a convex, nondecreasing "
        "function of the tables' mean variances.",
        kind=const("custom"),
        name=of_type("string", pattern="\\S"),
    ),
}

DEFINITIONS = {
    "exact_number": of_type(
        "string",
        "A positive decimal (0.125) or, where there is none, a ratio in lowest terms (1/3).",
        pattern="^(?!0$)((0|[1-9][0-9]*)(\\.[0-9]*[1-9])?|[1-9][0-9]*/[1-9][0-9]*)(?!\\n)$",
    ),
    "budget": record(
        "The privacy budget, and whom it protects.",
        stated={
            "description": (
                "The budget as it was given: a privacy cost, rho (zero-concentrated "
                "differential privacy), mu (its square is the privacy cost), or epsilon and"
                " delta."
            ),
            "type": "object",
            "properties": {
                "privacy_cost": exact(),
                "rho": exact(),
                "mu": exact(),
                "epsilon": exact(),
                "delta": exact(),
            },
            "oneOf": [
                {
                    "required": ["privacy_cost"],
                    "maxProperties": 1,
                },
                {
                    "required": ["rho"],
                    "maxProperties": 1,
                },
                {
                    "required": ["mu"],
                    "maxProperties": 1,
                },
                {
                    "required": ["epsilon", "delta"],
                    "maxProperties": 2,
                },
            ],
            "additionalProperties": False,
        },
        privacy_cost=exact("What the privacy unit may lose at most: twice the rho of zCDP."),
        max_records_per_person=of_type(
            ["integer", "null"],
            "null: the privacy unit is one record. m: it is one person with at most m "
            "records; everything is then measured on records at the privacy cost divided by"
            " the square of m.",
            minimum=1,
        ),
        neighbours=const(
            "replace",
            "Neighbours replace the records of a unit by as many others, and the number of records "
            "is public; left out where they add or remove the unit.",
        ),
        period=name(
            "The attribute of which a person has at most one record for each value; left out where "
            "a person's records can be any."
        ),
        exact=rows(
            rows(name(), "Names of attributes, sorted, each once.", minItems=1),
            "The totals that are released as they are, and that neighbours keep: sorted, none "
            "inside of another; left out where there are none. Only with neighbours replace.",
            minItems=1,
        ),
        distinct=name(
            "The column whose distinct values are counted in the place of records: one record of "
            "each is; max_records_per_person is 1 then. Left out where records are counted."
        ),
        unit_noun=name(
            "The word for who is protected, in the singular, such as household; left out where it "
            "is a person, or a record that is protected by itself."
        ),
    )
    | {"required": ["stated", "privacy_cost", "max_records_per_person"]},
    "impossible": rows(
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": name(),
        },
        "Combinations of values that no record has, each once: the attributes, in the order"
        ' of the domain, with a text that selects values ("0..14", "F", "North,South"). '
        "Left out where there are none. The noise does not depend on them.",
        minItems=1,
    ),
    "attribute_bases": record(
        attribute=name("Its name."), bases=rows(ref("basis"), "Single values first.", minItems=1)
    ),
    "basis": {
        "description": "A query basis: which sums of an attribute's values a table answers.",
        "oneOf": [
            record(
                "Each value by itself (identity), all values up to each one (prefix), "
                "every range of consecutive values (ranges: 0 to 0, 0 to 1, ..., then 1"
                " to 1, ...).",
                kind={
                    "enum": ["identity", "prefix", "ranges"],
                },
            ),
            record(
                "Each value with the width - 1 values before it, fewer at the start.",
                kind=const("windows"),
                width=of_type("integer", minimum=1),
            ),
            record(
                "The total, groups of values from coarse to fine, the single values. "
                "widths: how many consecutive values groups hold; empty: the groups of "
                "the attribute.",
                kind=const("hierarchy"),
                widths=rows(of_type("integer", minimum=2)),
            ),
            record(
                "Of an attribute of amounts, and of no other: the sum, as the limits on low"
                " and high over the larger of them in size; the records with an amount; the"
                " records of each missing value. The limits are those of the attribute.",
                kind=const("sums"),
                minimum=name(),
                maximum=name(),
            ),
            record(
                "Of an attribute of weights, and of no other: the weighted count, as the "
                "limits on low and high over the maximum. The limits are those of the "
                "attribute.",
                kind=const("weighted-counts"),
                minimum=name(),
                maximum=name(),
            ),
            record(
                "A matrix: one row a query, one number for each value.",
                kind=const("custom"),
                name=of_type("string", "Of the matrix; may be empty."),
                labels=rows(
                    name(), "One for each row.", minItems=1, maxItems=10000, uniqueItems=True
                ),
                rows=rows(
                    rows(of_type("number"), minItems=1, maxItems=1000),
                    "Together they determine the count of every value.",
                    minItems=1,
                    maxItems=10000,
                ),
            ),
        ],
    },
    "strategy": record(
        "What is measured of an attribute of n values: n - 1 rows of n whole numbers, "
        "over 2 to the power of bits. With a row of ones it is invertible.",
        attribute=name("Its name."),
        bits=of_type(
            "integer",
            "The numbers of the matrix are over 2 to the power of this.",
            minimum=0,
            maximum=20,
        ),
        matrix=rows(
            rows(of_type("integer", minimum=-1048576, maximum=1048576), minItems=2),
            "One row for each number that is measured, one column for each value.",
            minItems=1,
        ),
    ),
    "field": {
        "type": "object",
        "properties": {
            "name": name(),
            "title": name(),
            "groups": rows(
                rows(name()),
                ("For each value the path of groups it lies in, coarsest first; empty: in none."),
                minItems=1,
                maxItems=1000000,
            ),
            "levels": {
                "description": (
                    "Groupings that tables can have in place of the values, by name: for each "
                    "value the group it lies in. Tables number them behind all attributes, in the "
                    "order of the attributes; levels that follow from groups are numbered behind "
                    "those of the same attribute."
                ),
                "type": "object",
                "minProperties": 1,
                "additionalProperties": rows(name(), minItems=3, maxItems=1000000),
            },
        },
        "required": ["name", "type"],
        "oneOf": [
            {
                "description": (
                    "Listed categories, of type number where they are compared as numbers; "
                    "categories, if there, gives their labels, spellings for each the other texts "
                    "that stand for it in records."
                ),
                "properties": {
                    "type": {"enum": ["string", "number"]},
                    "constraints": record(
                        enum=rows(name(), minItems=1, maxItems=1000000, uniqueItems=True)
                    ),
                    "categories": rows(
                        record(value=of_type("string"), label=of_type("string")), minItems=1
                    ),
                    "spellings": rows(rows(name()), minItems=1, maxItems=1000000),
                },
                "required": ["constraints"],
            },
            {
                "description": (
                    "Whole numbers from minimum to maximum, in groups of step (1 if not given)."
                ),
                "properties": {
                    "missingValues": _MISSING_VALUES,
                    "recode": _RECODE,
                    "type": const("integer"),
                    "constraints": {
                        "type": "object",
                        "properties": {
                            "minimum": of_type("integer"),
                            "maximum": of_type("integer"),
                            "step": of_type("integer", minimum=2),
                        },
                        "required": ["minimum", "maximum"],
                        "additionalProperties": False,
                    },
                },
                "required": ["constraints"],
            },
            {
                "description": (
                    "Days from minimum to maximum, in groups of step; or between increasing edges, "
                    "of which the last is the last day. format is how texts of records write a day."
                ),
                "properties": {
                    "missingValues": _MISSING_VALUES,
                    "recode": _RECODE,
                    "type": {"enum": ["date", "yearmonth"]},
                    "format": of_type("string"),
                    "constraints": {
                        "type": "object",
                        "properties": {
                            "minimum": of_type("string"),
                            "maximum": of_type("string"),
                            "step": of_type("string"),
                        },
                        "required": ["minimum", "maximum", "step"],
                        "additionalProperties": False,
                    },
                    "bins": rows(of_type("string"), minItems=2, maxItems=1000001),
                },
                "oneOf": [{"required": ["constraints"]}, {"required": ["bins"]}],
            },
            {
                "description": (
                    "Intervals between increasing edges: left edge included, right edge "
                    "not, but for the last. Of type integer where all numbers are whole."
                ),
                "properties": {
                    "missingValues": _MISSING_VALUES,
                    "recode": _RECODE,
                    "type": {"enum": ["number", "integer"]},
                    "bins": rows(of_type("number"), minItems=2, maxItems=1000001),
                },
                "required": ["bins"],
            },
            {
                "description": (
                    "Amounts, of which tables have the sums: the limits that they are clamped to, "
                    "the decimal places that they are rounded to, and their unit. Counts of tables "
                    "with them, and so measured numbers and noise, are multiplied by the range in "
                    "smallest steps: highest - lowest of each record at low, and so on."
                ),
                "properties": {
                    "missingValues": _MISSING_VALUES,
                    "type": const("number"),
                    "bounds": rows(name(), minItems=2, maxItems=2),
                    "decimals": of_type("integer", minimum=0, maximum=6),
                    "unit": name(),
                    "weights": const(True, "They are survey weights."),
                },
                "required": ["bounds", "decimals"],
            },
        ],
        "unevaluatedProperties": False,
    },
}
