"""The fields of tables in areas in a plan file."""

from rpexplore.planning.plan_fields import (
    ATTRIBUTES,
    BASES,
    BLOCK_STRATEGIES,
    BUDGET,
    LOSS_VALUE,
    LOSSES,
    REQUIRED,
    STRATEGIES,
    TARGET,
    WEIGHT,
    certificate,
    const,
    domain,
    exact,
    index,
    name,
    of_type,
    one_of,
    record,
    rows,
    sha256,
)

_LOSSES = ("sum_of_variances", "max_variance", "sum_within_targets", "max_within_targets")
_TABLE = record(
    attributes=ATTRIBUTES,
    weight=WEIGHT,
    target=TARGET,
    required=REQUIRED,
    basis_index=rows(
        index(),
        "The basis in which the table has each of its attributes: its number, from 0, in "
        "the attribute's list under bases; the same on all levels.",
    ),
)
_WORKLOAD = record(
    areas=of_type("integer", "How many areas it is asked for.", minimum=1),
    tables=rows(
        _TABLE,
        "The tables, each once, by number of attributes and then in the order of the domain.",
        minItems=1,
    ),
)
FIELDS = record(
    kind=const("areas"),
    domain=domain(
        "The other attributes, as a Frictionless Table Schema; the areas are none of them.",
    ),
    loss=one_of(
        *(LOSSES[loss] for loss in _LOSSES),
        meaning="What the plan makes small. Of each table a sum counts the mean over the areas "
        "that it is asked for; the largest variance is that of any area, and targets are met in "
        "every area.",
    ),
    uniform_levels=of_type(
        "boolean", "Whether all areas of a level that are measured have one precision."
    ),
    budget=BUDGET,
    privacy_cost=exact(
        "Privacy cost of the plan for the privacy unit: at least the largest, over areas "
        "that are not divided, of the exact sum over the area and all that it lies in, and "
        "over residuals, of the product over the residual's attributes of (n-1)/n (sizes n;"
        " the largest squared column norm of its strategy's matrix, for an attribute that "
        "has one), times unit, factor and multiple, times the square of "
        "max_records_per_person; at most the budget's."
    ),
    certificate=certificate(
        "loss",
        LOSS_VALUE,
        "No plan with this budget and independent noise on every area (and one precision a "
        "level, if uniform_levels) has a loss below lower_bound; the prices in the file of "
        "precisions prove it.",
    ),
    files=record(
        "SHA-256, in hexadecimal, of the files beside this one, whose names begin with "
        "areas- and precisions-, followed by the first 16 digits and .parquet.",
        areas=sha256(
            "One row an area, level by level from the top, the parts of an area behind each"
            " other in ascending order of their codes: parent (int32: the row from 0 of the"
            " area that it is a part of, -1 for the top), code (a text, unique among the "
            "parts of an area) and, where areas have names, name. Where some areas are known to "
            "have nobody, these follow, level by level, and empty (boolean) tells; they are in no "
            "number of areas here."
        ),
        precisions=sha256(
            "One row for all neighbouring parts of one area that are not divided and asked "
            "for the same, or for one divided area, in the order of the areas: areas "
            "(int32: how many it stands for), workload (int32: the number from 0 of what "
            "they are asked for, -1 for nothing), for each profile k from 0 multiple_k "
            "(int64, at most 2 to the power of 40, which the largest is; 0: not measured), "
            "price (float64: of the privacy of a record in one of the areas, 0 for a "
            "divided one; summed over areas 1; where an attribute is in tables at several levels "
            "and records cost different things, price_k for each kind k of them) and, except with "
            "sum_of_variances, for each "
            "of all tables of all workloads, by number of attributes and then in the order "
            "of the domain (where cells differ, for each of cells), table_price_a (float64:"
            " the weight of its scaled variance in the sum that proves the bound, summed "
            "over areas and tables 1; where its target is required, the price of that in "
            "the unit of the loss)."
        ),
    ),
    unit=exact(
        "A residual has in an area independent discrete Gaussian noise with variance "
        "parameter 1 / (unit * factor * multiple), with the multiple of the residual's "
        "profile in that area."
    ),
    bases=BASES,
    strategies=STRATEGIES,
    block_strategies=BLOCK_STRATEGIES,
    levels=rows(
        record(
            name=name("What the level is called; no other level has this name."),
            areas=of_type("integer", "How many areas it has; 1 for the first.", minimum=1),
        ),
        "The levels of the areas, from the top.",
        minItems=1,
    ),
    workloads=rows(_WORKLOAD, "What is asked for, each for one area or more.", minItems=1),
    cells=rows(
        record(
            table=index(
                "The table: its number, from 0, among all tables of all workloads, by number of"
                " attributes and then in the order of the domain."
            ),
            rows=rows(index(), "For each attribute of the table which query of its basis, from 0."),
        ),
        "The cells that the loss looks at one by one, where they differ within tables: one "
        "for each of the last columns table_price_a of the file of precisions, which with "
        "sum_within_targets follow those of the tables.",
    ),
    residuals=rows(
        record(
            profile=index("Which multiples it has."),
            factor=of_type("integer", "What they are multiplied by.", minimum=1, maximum=1048576),
        ),
        "All subsets of the tables of all workloads, without attributes of a single value, "
        "by number of attributes and then in the order of the domain. Profiles stand in the"
        " order of their first use.",
        minItems=1,
    ),
)
FIELDS["required"] = [key for key in FIELDS["required"] if key != "block_strategies"]
