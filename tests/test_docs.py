"""What the code cites of docs/ is there, and so is what docs/ cites of itself."""

import ast
import re
from pathlib import Path

import pytest

from rpexplore.analysis.glossary import GLOSSARY
from rpexplore.domain.readings import READINGS

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
# "docs/mathematics.md §5.1, §5.2", also over the end of a line of a comment.
CITATION = re.compile(r"docs/([\w-]+\.md)((?:[\s#,;]|and|to)*§\d+(?:\.\d+)*)+")
SECTION = re.compile(r"§(\d+(?:\.\d+)*)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (\d+(?:\.\d+)*)\.? ", re.MULTILINE)
# Cited as one document, which has their contents.
MATHEMATICS = "mathematics.md"
MATHEMATICS_PAGES = [path for path in DOCS if path.name.startswith("mathematics")]


def sections_of(path: Path) -> list[str]:
    """The numbered sections of a document; those of all pages of the mathematics."""
    pages = MATHEMATICS_PAGES if path in MATHEMATICS_PAGES else [path]
    return [section for page in pages for section in HEADING.findall(page.read_text("utf-8"))]


def citations(text: str) -> set[tuple[str, str]]:
    """(document, section) of every citation in a text."""
    return {
        (match[1], section)
        for match in CITATION.finditer(text)
        for section in SECTION.findall(match[0])
    }


def test_citations_are_read_with_all_their_sections():
    text = "x (docs/mathematics.md §5.1, §5.2) and docs/a-b.md\n    # §7; RP §3; docs/c.md: no"
    assert citations(text) == {
        ("mathematics.md", "5.1"),
        ("mathematics.md", "5.2"),
        ("a-b.md", "7"),
    }


def test_every_section_that_is_cited_is_a_heading():
    sections = {path.name: set(sections_of(path)) for path in DOCS}
    files = [
        *(path for room in ("rpexplore", "pages", "tests") for path in (ROOT / room).rglob("*.py")),
        *PAGES,
    ]
    cited = {
        (path.relative_to(ROOT), *citation)
        for path in files
        if path.name != Path(__file__).name
        for citation in citations(path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 40
    assert not {
        (str(path), name, section)
        for path, name, section in cited
        if section not in sections.get(name, ())
    }


def test_a_document_numbers_its_sections_once_and_cites_those_it_has():
    for path in DOCS:
        sections, text = sections_of(path), path.read_text(encoding="utf-8")
        assert len(sections) == len(set(sections)), path
        # A section with a paper's short name before it is the paper's: "ReM §3.2, App. F".
        text = CITATION.sub("", text)
        own = re.sub(r"\b(RP\+?|FFU|ReM|HDMM|PGM|CKS|BW|BV|VR|KOV) §[\d.]+", "", text)
        assert set(SECTION.findall(own)) <= set(sections), path


def test_the_contents_of_the_mathematics_lead_to_every_section():
    text = (ROOT / "docs" / MATHEMATICS).read_text(encoding="utf-8")
    listed = re.findall(r"- \[§([\d.]+) [^]]*\]\(([\w-]+\.md)?#", text)
    assert sorted(listed) == sorted(
        (section, "" if page.name == MATHEMATICS else page.name)
        for page in MATHEMATICS_PAGES
        for section in HEADING.findall(page.read_text(encoding="utf-8"))
    )


def anchors(text: str) -> set[str]:
    """Of the headings of a document, as its readers' sites make them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_to_a_file_or_a_heading_leads_there():
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for link in LINK.findall(text):
            if link.startswith("https://"):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name) if name else path
            assert target.exists(), (path, link)
            there = target.read_text(encoding="utf-8") if anchor else ""
            assert not anchor or anchor in anchors(there), (path, link)


def test_every_page_is_in_the_index():
    index = LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    pages = {path.name for path in DOCS} - {path.name for path in MATHEMATICS_PAGES}
    assert pages - {"README.md"} == {link for link in index if "/" not in link} - {MATHEMATICS}
    assert MATHEMATICS in index
    assert "docs/README.md" in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_path_that_is_named_to_contributors_exists(name: str):
    """`rpexplore/errors.py`, `planning/solvers/`: from the root, or from rpexplore."""
    text = (ROOT / name).read_text(encoding="utf-8")
    named = {path for path in re.findall(r"`([\w.\-]+(?:/[\w.\-]*)+)`", text) if "…" not in path}
    assert len(named) > 10
    assert not {
        path
        for path in named
        if not any((base / path).exists() for base in (ROOT, ROOT / "rpexplore"))
    }


def test_the_glossary_of_the_documents_is_that_of_the_app():
    written = "\n".join(
        "\n".join([f"## {group}", *(f"- **{term}**: {text}" for term, text in terms.items())])
        for group, terms in GLOSSARY.items()
    )
    document = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert document[document.index("## ") :].split() == written.split()


def test_the_documents_say_of_the_readings_of_a_release_what_the_app_says():
    page = (ROOT / "docs" / "postprocessing.md").read_text(encoding="utf-8")
    for name, reading in READINGS.items():
        assert f"| {name} | {reading.trust} | {reading.use} |" in page


PACKAGES = [path.parent for path in sorted((ROOT / "rpexplore").rglob("__init__.py"))][1:]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_says_what_it_is_for_and_names_modules_that_are_there(package: Path):
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    first, *rest = text.split("\n")
    assert first.endswith(".")
    assert "Imports " in text
    assert len(rest) <= 16
    modules = {path.stem for path in (ROOT / "rpexplore").rglob("*.py")}
    rooms = {path.name for path in PACKAGES} | {"rpexplore"}
    named = set(re.findall(r"`([\w.]+?)/?`", text))
    assert {name for name in named if name.split(".")[-1] not in modules | rooms} == set()


def test_every_picture_is_shown_and_small():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    texts = "".join(page.read_text("utf-8") for page in pages)
    pictures = list((ROOT / "tests" / "browser" / "screenshots").iterdir())
    assert len(pictures) > 10
    for picture in pictures:
        assert f"screenshots/{picture.name})" in texts, picture.name
        assert picture.stat().st_size <= 100_000, picture.name
