"""The last page of a report: what its terms mean."""

from rpexplore.analysis.glossary import GLOSSARY
from rpexplore.export.report.section import Facts, Section


def glossary() -> Section:
    """Every term of the app and of reports."""
    lists = [Facts(tuple(terms.items()), title=group) for group, terms in GLOSSARY.items()]
    return Section("Glossary", (), lists)
