"""The glossary: every term that is on screen, once, in a sentence or two."""

import re

import pytest

from rpexplore.analysis.glossary import GLOSSARY, meaning
from rpexplore.figures.chart import COLUMNS

# The words of the app's pages, in the order of a plan's life.
ON_SCREEN = """
Codebook; Attribute; Category; Table; k-way; Aggregation; Single values; Cumulative; Moving sums;
Ranges; Hierarchy; Own matrix; Weight; Target; Required; Objective; Minimise the average error;
Minimise the largest error; Minimise the largest shortfall from targets;
Meet required targets, then …; Average with a bounded largest error; Compromise (p-norm);
Equal weight per table; Equal weight per cell; Square root of cells; Privacy unit; Privacy budget;
Standard error; Margin of error; Coefficient of variation; Median; 10th / 90th percentile;
Least / most accurate; Expected counts; Optimality; Reference distribution;
Binding targets; Contribution; Average vs worst case; Scenario; Project; Dry run;
Out-of-codebook values; Missing values; Ledger; Ledger entry; Budget limit; Subtotal;
Post-processing; Baselines;
ρ; ε; δ; μ; Variance; Residual; Privacy profile; Unused budget by cell; Apply; Save as scenario;
Part; Share; Own count; Area; Level; Leaf; Certificate
"""
TERMS = [" ".join(term.split()) for term in ON_SCREEN.split(";")]


def test_every_term_on_screen_has_a_meaning():
    assert [term for term in TERMS if not meaning(term)] == []


def test_columns_are_explained_by_terms_of_the_glossary():
    terms = [column.term for column in COLUMNS.values() if column.term]
    assert "Margin of error" in terms
    assert all(meaning(term) for term in terms)


def test_no_term_is_there_twice_and_texts_are_short():
    texts = [item for terms in GLOSSARY.values() for item in terms.items()]
    assert len({term.lower() for term, _ in texts}) == len(texts)
    for term, text in texts:
        assert text.endswith(".")
        assert 1 <= len(re.findall(r"\.(?= [A-Z]|$)", text)) <= 2, term
        assert len(text) <= 240, term


def test_what_is_no_term_is_refused():
    with pytest.raises(KeyError):
        meaning("workload")
