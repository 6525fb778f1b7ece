"""The fields of adaptive tables in a plan file."""

from rpexplore.planning.plan_fields import (
    ATTRIBUTES,
    BUDGET,
    const,
    domain,
    exact,
    of_type,
    positive,
    record,
    ref,
    rows,
)

ROUND = record(
    tables=of_type("integer", "How many different sets are selected.", minimum=1),
    selection_rho=exact(
        "rho of zCDP for one record, of the exponential mechanism that selects one of them."
    ),
    measurement_rho=exact(
        "rho of zCDP for one record, of the noise on the residual of each of them."
    ),
)
_TABLE = record(
    attributes=ATTRIBUTES,
    weight=positive("How much the table counts, relative to others."),
    target={
        "description": "There are no targets: nothing is promised of accuracy.",
        "type": "null",
    },
    required={
        "description": "Whether a target is required.",
        "const": False,
    },
)
FIELDS = record(
    kind=const("rounds"),
    domain=domain("The attributes, as a Frictionless Table Schema."),
    budget=BUDGET,
    privacy_cost=exact(
        "Privacy cost for the privacy unit: at least the first plan's, and for each round "
        "the number of tables times twice the sum of selection_rho and measurement_rho, "
        "times the square of max_records_per_person; at most the budget's."
    ),
    expected_records=of_type(
        "integer",
        "How many records are expected: a public number, by which the budget was divided.",
        minimum=1,
        maximum=1000000000000,
    ),
    first_plan=ref(
        "tables",
        (
            "What is measured first, a part with tables of its own: all sets of 1 and 2 "
            "attributes within the tables, of attributes with more than one value."
        ),
    ),
    rounds=rows(
        ROUND,
        (
            "The rounds, in their order. In each, tables are selected among all sets of 2 and 3"
            " attributes within the tables, of attributes with more than one value (2 alone if "
            "those of 3 have more than 40 million cells together); then their residuals are "
            "measured."
        ),
        minItems=1,
        maxItems=1000,
    ),
    tables=rows(
        _TABLE,
        (
            "The tables that are estimated, each once, by number of attributes and then in the "
            "order of the domain."
        ),
        minItems=1,
    ),
)
