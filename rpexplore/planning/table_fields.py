"""The fields of tables in a plan file."""

from rpexplore.planning.plan_fields import (
    BASES,
    BASIS_INDEX,
    BUDGET,
    LOSS_VALUE,
    LOSSES,
    REQUIRED,
    STRATEGIES,
    TARGET,
    WEIGHT,
    at_least_0,
    certificate,
    const,
    domain,
    exact,
    index,
    of_type,
    one_of,
    positive,
    positive_or_null,
    record,
    rows,
)

CLASS = record(
    basis_index=BASIS_INDEX,
    weight=WEIGHT,
    target=TARGET,
    required=REQUIRED,
    variance=positive("Mean variance of the noise of the cells, in records squared."),
    largest_variance=positive(
        "Variance of the noise of the least accurate cell, in records squared."
    ),
    smallest_variance=positive(
        "Variance of the noise of the most accurate cell, in records squared."
    ),
    shadow_price=at_least_0(
        "Of a sum or a largest variance, by how many per cent the smallest possible loss "
        "grows when the weight grows by one per cent; of other losses, the table's share of"
        " the sum of dual weights times variances. Over all tables they sum to 1."
    ),
    dual_weight=of_type(
        ["number", "null"],
        (
            "The weight on the table's variance from which the lower bound follows: no plan "
            "with this budget has a smaller sum of dual weights times variances than the closed"
            " form of a weighted sum, and the loss bounds itself from below by such a sum. What"
            " is above the table's weight in a sum, or all in max_within_targets, is on its "
            "least accurate cells, as cells has them."
        ),
        minimum=0,
    ),
)
CELL = record(
    table=index("Number of the table, from 0."),
    rows=rows(index(), "The row, from 0, of the basis of each of the table's attributes."),
    shadow_price=at_least_0("The share of this cell in the proof; they sum to 1."),
)
_TABLE = {
    "description": "Its attributes and its class.",
    "type": "array",
    "prefixItems": [
        rows(
            index(),
            "Numbers of attributes, from 0, under fields of the domain; empty: the total.",
            uniqueItems=True,
        ),
        index("The number of its class, from 0, under classes."),
    ],
    "items": False,
    "minItems": 2,
}
_NOISE_SCALE = of_type(
    "string",
    "In records squared: a positive plain decimal of at most 18 significant digits.",
    pattern="^(?!0$)(0|[1-9][0-9]*)(\\.[0-9]*[1-9])?(?!\\n)$",
)
FIELDS = record(
    kind=const("tables"),
    domain=domain("The attributes, as a Frictionless Table Schema."),
    loss=one_of(*LOSSES.values(), meaning="What the plan makes small."),
    budget=BUDGET,
    privacy_cost=exact(
        "Privacy cost of the plan for the privacy unit: at least the exact sum over "
        "residuals of the product over their attributes of (n-1)/n (sizes n) or, for one "
        "with a strategy, the largest squared column norm of its matrix, divided by "
        "sigma_squared, times the square of max_records_per_person; at most the budget's."
    ),
    certificate=certificate(
        "loss",
        LOSS_VALUE,
        "No plan with this budget has a loss below lower_bound.",
        limit=positive_or_null(
            "Of sum_with_bounded_max: the largest weight times variance of any cell allowed."
        ),
    ),
    bases=BASES,
    strategies=STRATEGIES,
    classes=rows(
        CLASS,
        "What tables have beside their attributes, each distinct combination once.",
        minItems=1,
    ),
    tables=rows(_TABLE, "What is released.", minItems=1),
    cells=rows(
        CELL,
        (
            "The least accurate cells that limits and largest variances were found to hang on, "
            "by their shares in the proof; empty where all cells of each table are alike, and "
            "for losses of mean variances."
        ),
    ),
    noise_scales=rows(
        _NOISE_SCALE,
        "The exact noise scales of residuals, sigma squared, each distinct one once.",
        minItems=1,
        uniqueItems=True,
    ),
    residuals=rows(
        index(),
        (
            "What is measured: of every set of attributes within some table, what its marginal "
            "holds beyond the smaller ones. The sets follow from the tables; of each, its noise"
            " scale: the number, from 0, under noise_scales."
        ),
        minItems=1,
    ),
)
