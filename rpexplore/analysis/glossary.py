"""The glossary: what every term on screen and in reports means, in one or two sentences.

The app's help texts and the last page of the report are these. Plain words first, the symbol
second; the terms are those of statistics, disclosure control and differential privacy.
"""

from collections.abc import Mapping
from types import MappingProxyType

from rpexplore.common.text import capitalised
from rpexplore.domain.readings import READINGS


def _meaning(reading: str) -> str:
    """A description of a reading of a release, and how far it can be trusted."""
    of_reading = READINGS[reading]
    return f"{capitalised(of_reading.what)}. {capitalised(of_reading.trust)}."


_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Privacy": {
        "Differential privacy": "A promise about a release: it comes out much the same with or "
        "without any one record (or person), so little can be learned about that record or person.",
        "Privacy unit": "The promise protects this unit: a record, or a person with at most m "
        "records. For the same noise, protecting a person costs m² times the budget of a record.",
        "Neighbours": "Two data sets that a release must hardly tell apart: they differ by one "
        "privacy unit that is there or not, or, where the number of records is public, by what the "
        "records of one unit hold. The second does not protect that somebody is there.",
        "Panel": "Records of people over periods, such as quarters, with at most one record of a "
        "person in each. A person with records in 8 quarters costs about 8 times a record then, "
        "and not 64 times.",
        "Exact totals": "Totals that are released as they are, such as a census total of each "
        "region. Neighbours then keep them, and whatever they tell by themselves is not protected.",
        "Privacy budget": "How much a release may depend on one privacy unit. A larger budget is "
        "more accurate and less private; the budgets of several releases of the same records add "
        "up.",
        "ρ": "The budget in zero-concentrated differential privacy (zCDP), in which budgets add up "
        "exactly. Noise of standard error σ in a single count costs ρ = 1/(2σ²).",
        "ε": "The same promise in other words: any result is at most e^ε times as likely with the "
        "privacy unit as without it, plus δ. One ρ gives an ε for every δ.",
        "δ": "The small probability with which the ε bound may fail; choose it well below "
        "1/(number of records), usually 1e-6 or smaller. The smaller δ, the larger ε.",
        "μ": "The budget as √(2ρ). Noise of standard error σ in a single count has μ = 1/σ.",
        "Noise": "Whole random numbers from the discrete Gaussian distribution that are added to "
        "measured counts. They are drawn once, when the records are measured.",
    },
    "Codebook": {
        "Codebook": "The attributes of the records and all their categories, from public "
        "knowledge. Planning needs no records.",
        "Attribute": "A column of the records, such as age or region; also called a variable.",
        "Category": "A value of an attribute. Every record has exactly one category of each "
        "attribute.",
        "Area": "A region, a municipality or another unit in which records are counted. Every area "
        "but the largest is within another one.",
        "Level": "One of several divisions, each within the next: single ages and age groups; "
        "municipalities, regions and the country.",
        "Leaf": "An area that is not divided further, such as a district. Every record is in "
        "exactly one leaf.",
        "Out-of-codebook values": "Values in the records that the codebook does not list. They are "
        "refused, or counted in a category that you choose beforehand.",
        "Missing values": "Empty cells of the records. They are refused, or counted in a category "
        "that you choose beforehand.",
        "Impossible combination": "Values of several attributes that, according to the codebook, "
        "no record has together: a structural zero.",
        "Pilot": "The one-way tables, measured first by a share of the budget. A forecast from "
        "their figures says how good all other tables will be, which are as accurate as without a "
        "pilot; or the rest is planned from them, for most people in good cells.",
        "Public table": "Counts, or shares, that are published already, such as a census by age. "
        "Forecasts agree with all public tables, and simulate what none of them says.",
        "Expected counts": "How many records you expect in each cell, from public sources only: a "
        "total, or an earlier published table. They show what an error means; adaptive plans and "
        "weights for smooth tables depend on them.",
    },
    "Tables": {
        "Table": "Counts of records for all combinations of the categories of some attributes; "
        "also called a marginal.",
        "Cell": "One count of a table.",
        "Own count": "A count under a condition that you type, such as adults in the north, with a "
        "target of its own; also called a linear query.",
        "Level of an attribute": "Groups of an attribute's values that a table has instead of the "
        "values, such as five-year groups of ages: age@five-year.",
        "k-way": "Of k attributes. All tables up to 3-way are the total and every table of one, "
        "two or three attributes.",
        "Total": "The table of no attributes: the number of all records.",
        "Weight": "How much the error of a table counts in the objective. A larger weight makes "
        "the table more accurate, at the expense of others.",
        "Weights for smooth tables": "Weights for a release that will be read as model-based "
        "estimates: larger for tables of many cells, much smaller for three or more attributes. "
        "In plans up to 2-way, the total and tables of few cells become less accurate.",
        "Target": "The accuracy that you want for a table: a standard error, a margin of error, "
        "or a share of an expected count.",
        "Required": "A required target has to be met before anything else is made more accurate.",
        "Subtotal": "A sum of cells of a released table. Its standard error takes the "
        "correlations of their errors into account.",
    },
    "Aggregation": {
        "Aggregation": "Which counts a table has along an attribute: single values, or sums of "
        "them.",
        "Single values": "A count for each category.",
        "Sums and counts": "The sum of amounts such as incomes, and how many records have one. "
        "Amounts beyond the limits of the codebook count as the nearer limit.",
        "Weighted count": "The sum of the survey weights of the records in a cell. Weights beyond "
        "the largest weight of the codebook count as the largest.",
        "Cumulative": "A count for each category and all before it: up to 17, up to 18, and so on.",
        "Moving sums": "A count for each run of a fixed number of neighbouring categories.",
        "Ranges": "A count for each range of neighbouring categories, from any to any.",
        "Hierarchy": "Counts of the total, of the groups of categories, and of the single "
        "categories.",
        "Own matrix": "Weighted sums of the categories: one for each row of a matrix of your own.",
        "Reference distribution": "How a total is assumed to spread over the categories of an "
        "aggregated attribute before they are measured: uniform, or optimised for the tables, "
        "never from records. Answers are unbiased with any.",
    },
    "Objective": {
        "Objective": "The quantity that the plan makes as small as possible within the privacy "
        "budget; also called the loss.",
        "Minimise the average error": "The plan makes the weighted sum of the tables' variances "
        "as small as possible.",
        "Equal weight per table": "In an average, every table counts the same, times its weight.",
        "Equal weight per cell": "In an average, every cell counts the same, so large tables "
        "count more.",
        "Square root of cells": "In an average, a table counts by the square root of its number "
        "of cells: between equal weight per table and per cell.",
        "Minimise the largest error": "The plan makes the largest weighted variance of any table "
        "as small as possible.",
        "Minimise the largest shortfall from targets": "The plan makes the largest ratio of a "
        "standard error to its table's target as small as possible.",
        "Meet required targets, then …": "The plan meets required targets first; the rest of the "
        "budget goes to the average error, or to the other targets.",
        "Average with a bounded largest error": "The plan makes the average error as small as "
        "possible, while the largest error stays at most a chosen share above its smallest "
        "possible value.",
        "Compromise (p-norm)": "Between the average and the largest error; the larger p, the "
        "nearer to the largest.",
    },
    "Accuracy": {
        "Standard error": "The standard deviation of the noise in a count, σ. Errors that were in "
        "the records before come on top.",
        "Variance": "The square of the standard error, σ². Objectives are made of variances.",
        "Margin of error": "Half of the 95 % interval, 1.96 σ: the true count is within it 95 % "
        "of the time.",
        "Coefficient of variation": "The standard error as a share of the expected count; short: "
        "CV.",
        "Good cell": "A cell with a coefficient of variation within the limit, 20 % unless you "
        "choose another. Counts that are not public are drawn again and again; a figure is the "
        "median, with its range.",
        "Rule": "When a table is good enough: if at least 90 % of its people are in good cells, or "
        "as you state it, such as CV<=20% for 90% of people in each table; of cells instead of "
        "people; in age,sex instead of each table.",
        "Total error": "The error of a sample survey and the noise together. The sampling error "
        "follows from the design effect (how much larger the variance is than that of a simple "
        "random sample) and the share of the population that is in the sample.",
        "Median": "The middle value: half of the tables (or cells) are more accurate.",
        "10th / 90th percentile": "One tenth of the tables have a smaller standard error than the "
        "10th percentile, and one tenth a larger one than the 90th.",
        "Root mean square": "The square root of the mean variance: the standard error of a table "
        "whose cells are not equally accurate.",
        "Least / most accurate": "The table, or cell, with the largest or smallest standard error.",
    },
    "Plan": {
        "Plan": "The noise of every measurement, fixed before any record is read, with everything "
        "that follows: the accuracy of every table, the cost, the proof.",
        "Part": "What a plan publishes of one kind: tables, tables in areas, own counts or "
        "adaptive tables. All parts of a plan have one budget, one guarantee and one release.",
        "Share": "How much of a plan's privacy budget a part has. Shares sum to 1; they are those "
        "that serve the objective best, unless you state others.",
        "Residual": "What a table adds to the tables within it, such as the interaction "
        "of age and sex. Each residual is measured once, with noise, and all tables are computed "
        "from these measurements.",
        "Optimality": "Proven within x %: the objective is at most x % above the smallest that "
        "Gaussian noise of the same cost can reach.",
        "Certificate": "The proof of optimality: a lower bound on the objective of all plans of "
        "the same cost. Anybody can check it from the plan file.",
        "Binding targets": "The targets that decide the smallest sufficient budget: only wider "
        "targets for these tables would make it smaller.",
        "Contribution": "The share of a binding target or a table in the budget or the objective; "
        "also called its shadow price.",
        "Average vs worst case": "The plans between the smallest average error and the smallest "
        "largest error, at the same budget.",
        "Baselines": "Simpler methods for the same tables or counts at the same budget, such as "
        "independent noise per cell.",
        "Privacy profile": "The share of the budget that a record costs in a list of your own "
        "counts, by the cell of the record. Below 100 %, budget is unused.",
        "Unused budget by cell": "What the records in a cell have left of the budget. You can "
        "count more about them at no cost.",
        "Simulation": "Before the run: made-up records, from the expected counts, are "
        "measured with the plan's noise, and the tables compared with them. It reads no record "
        "and spends nothing.",
        "Adaptive plan": "A plan whose release selects, in rounds, what it measures more "
        "accurately. The guarantee is that of any plan; the tables are biased estimates, and "
        "nothing is promised about their accuracy beforehand.",
        "Scenario": "The choices behind a plan, under a name: codebook, tables, weights, targets, "
        "objective, budget.",
        "Project": "Several scenarios, kept in one file.",
        "Apply": "Take a choice over into the open scenario.",
        "Save as scenario": "Keep a choice as a new scenario beside the open one.",
    },
    "Release": {
        "Release": "The run of a plan on records, which makes noisy tables and own counts, and "
        "spends the budget for good.",
        "Dry run": "Everything that a release does before its noise is drawn: it checks plan, "
        "folder, ledger and all records. It spends nothing.",
        "Ledger": "The book of what was spent on some records. Every release is entered before "
        "its noise is drawn.",
        "Ledger entry": "One run in the ledger, with its cost.",
        "Budget limit": "The most that all releases of some records may spend together; a run "
        "beyond the limit is refused.",
        "Approval": "A plan signed with the SSH key of somebody who has seen it. A ledger can "
        "demand a number of approvals before a plan is run.",
        "Allowed signers": "The list of people whose approvals count: their names and public keys.",
        "Post-processing": "Work on released tables, such as making counts nonnegative. It spends "
        "nothing, and biased results say so.",
        "Unbiased tables": _meaning("unbiased"),
        "Nonnegative tables": _meaning("nonnegative"),
        "Smooth tables": "Model-based estimates, biased: differences that may be noise, mostly of "
        "small groups, are shrunk. In tables of many small cells much nearer to the truth than "
        "unbiased counts; in tables of few large cells about as near.",
        "Model-based error": "The error of a smooth count if the model holds: the count ± 1.96 "
        "times it is a 95 % interval. Unlike the standard error of noise, nothing guarantees it.",
        "Share kept": "A smooth table is what all measurements together suggest for it, plus a "
        "share of its own measurement beyond that. This share is kept; the rest is assumed to be "
        "noise.",
        "Synthetic records": "Made-up records whose tables are near the released ones: drawn from "
        "a model of these tables, so no row is a person. They cost no privacy, and are biased.",
    },
}

GLOSSARY: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {group: MappingProxyType(terms) for group, terms in _GROUPS.items()}
)
"""Group -> term -> what it means, in the order of a glossary page; every term is there once."""

_MEANINGS = {term: text for terms in GLOSSARY.values() for term, text in terms.items()}


def meaning(term: str) -> str:
    """The meaning of a term, as a help text; `KeyError` for what is no term."""
    return _MEANINGS[term]
