"""The plans and reports of `scenarios`, each made once, and how a test reads a report."""

from functools import cache, cached_property
from html.parser import HTMLParser

from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.bundle import contents_of
from rpexplore.reports.report import Report, html
from tests.reports.scenarios import SCENARIOS

_VOID = {"meta", "link", "img", "br", "wbr", "hr", "input"}


class Page(HTMLParser):
    """A document as a list of (tag, attributes, text inside), which must be well nested."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self._open: list[int] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, {key: value or "" for key, value in attrs}, []))
        if tag not in _VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag):
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data):
        for index in self._open:
            self.elements[index][2].append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str], str]]:
        """(attributes, text inside) of every element of a kind."""
        return [(attrs, "".join(text)) for name, attrs, text in self.elements if name == tag]

    @cached_property
    def text(self) -> str:
        """What there is to read."""
        hidden = {text for tag in ("script", "style") for _, text in self.all(tag)}
        body = next(text for tag, _, text in self.elements if tag == "body")
        return " ".join(" ".join(part for part in body if part not in hidden).split())


@cache
def plan_of(name: str) -> TablePlan:
    """The plan of a scenario."""
    return SCENARIOS[name].table_plan()


@cache
def report_of(name: str) -> Report:
    """The report on a scenario."""
    return contents_of(plan_of(name), SCENARIOS[name])


@cache
def html_of(name: str) -> str:
    """The same as HTML."""
    return html(report_of(name))


@cache
def page_of(name: str) -> Page:
    """The same, read again."""
    return Page(html_of(name))
