"""The fields of own counts in a plan file."""

from rpexplore.planning.plan_fields import (
    BUDGET,
    at_least_0,
    certificate,
    const,
    domain,
    exact,
    name,
    of_type,
    positive,
    record,
    rows,
)

QUERY = record(
    name=name("All different."),
    target=positive("Wanted standard error of the answer, in the unit of the query."),
    terms=rows(
        {
            "type": "array",
            "prefixItems": [
                of_type("integer", minimum=0, maximum=1023),
                of_type("integer", minimum=0, maximum=1023),
                of_type("number", minimum=-1000000, maximum=1000000),
            ],
            "minItems": 3,
            "maxItems": 3,
        },
        (
            "Runs of cells with one coefficient other than 0, ascending: first cell, last cell "
            "(included), coefficient, a decimal of at most 6 places."
        ),
        minItems=1,
    ),
    variance=positive("Variance of the noise of the answer, in that unit squared."),
    shadow_price=at_least_0(
        "By how many per cent the smallest possible largest ratio falls when the squared "
        "target grows by one per cent; they sum to 1."
    ),
)
FIELDS = record(
    kind=const("counts"),
    domain=domain(
        "The attributes, as a Frictionless Table Schema; together they have at most 1024 cells."
    ),
    budget=BUDGET,
    privacy_cost=exact(
        "Privacy cost of the plan for the privacy unit: at least the largest sum of squares"
        " of a column of the strategy, divided by gamma_squared, times the square of "
        "max_records_per_person; at most the budget's."
    ),
    gamma_squared=exact(
        "Variance parameter of the noise on every number that is measured; below 2 to the "
        "power of 92."
    ),
    certificate=certificate(
        "largest_ratio",
        positive(
            "The largest ratio of a query's variance to its squared target in this plan; all "
            "targets are met where it is at most 1."
        ),
        (
            "No mechanism with Gaussian noise and this budget has a largest ratio of a query's "
            "variance to its squared target below lower_bound: that is the square of the sum of"
            " the singular values of the queries, with rows multiplied by the root of the "
            "shadow price over the target and columns by the root of the cell weight, divided "
            "by the privacy cost of one record."
        ),
        cell_weights=rows(
            at_least_0(), "One for each cell; they sum to 1.", minItems=1, maxItems=1024
        ),
    ),
    queries=rows(QUERY, "What is released.", minItems=1, maxItems=10000),
    strategy=rows(
        rows(of_type("integer", minimum=-67108864, maximum=67108864), minItems=1, maxItems=1024),
        "R, what is measured: rows of whole numbers, one for each cell.",
        minItems=1,
        maxItems=1024,
    ),
)
