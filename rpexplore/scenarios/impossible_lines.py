"""Impossible combinations as lines that people type: "age=0..14 marital_status=Married"."""

from dataclasses import replace

from rpexplore.domain.domain import Domain
from rpexplore.domain.impossible import combination_from_text, stated_combinations


def lines_of(domain: Domain) -> str:
    """What a domain states to be impossible, one combination a line."""
    return "\n".join(combination.text for combination in domain.impossible)


def domain_with_lines(domain: Domain, text: str) -> Domain:
    """The domain that states these combinations, one a line, and no others.

    Raises `DomainError` for the first line that cannot be used.
    """
    # As they are, not read again: a value may be called as a selection begins ("sex=").
    known = {combination.text: dict(combination.selections) for combination in domain.impossible}
    # Not splitlines: names may hold what Unicode calls a line separator.
    lines = filter(None, map(str.strip, text.split("\n")))
    stated = [known.get(line) or combination_from_text(domain, line) for line in lines]
    return replace(domain, impossible=stated_combinations(domain, stated))
