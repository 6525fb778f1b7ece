"""A quality report under the headings of SIMS 2.0: quality.md and quality.json beside the tables.

The Single Integrated Metadata Structure of the European Statistical System, of which ESMS and ESQRS
are parts (https://ec.europa.eu/eurostat/web/metadata/reference-metadata-reporting-standards). What
a release knows is filled in; what only its producer knows is marked as such, and nothing is
guessed. Concepts have the identifiers that files by the SDMX structure of ESMS have; in other
languages than English their names are translations, in `texts/concepts.json`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rpexplore.common.text import capitalised, describe_share, markdown_text
from rpexplore.domain.readings import FLAGS, coefficients_of_variation, quality_flags
from rpexplore.domain.result_schema import Schema
from rpexplore.privacy.budget import ADD_REMOVE
from rpexplore.privacy.conversions import rho_text
from rpexplore.results.formats.export import Export, ExportedTable, Format, label_in
from rpexplore.results.formats.languages import ENGLISH, Language
from rpexplore.results.measurement_source import sources_of

REPORT, FACTS = "quality.md", "quality.json"
_MOST_ROWS = 500  # tables in the report; the file for programs has all


class Concept(NamedTuple):
    """A heading of SIMS.

    number      "13.2", without the S before it
    name        as SIMS has it
    id          of the concept in ESMS; "" where there is none, or none is known here
    wanted      what the producer is asked for; "" for a heading of others
    """

    number: str
    name: str
    id: str
    wanted: str


CONCEPTS = tuple(
    Concept(*fields)
    for fields in (
        ("1", "Contact", "CONTACT", ""),
        ("1.1", "Contact organisation", "CONTACT_ORGANISATION", "the organisation"),
        ("1.2", "Contact organisation unit", "ORGANISATION_UNIT", "the unit"),
        ("1.3", "Contact name", "CONTACT_NAME", "the name"),
        ("1.4", "Contact person function", "", "the function"),
        ("1.5", "Contact mail address", "CONTACT_MAIL", "the postal address"),
        ("1.6", "Contact email address", "CONTACT_EMAIL", "the e-mail address"),
        ("1.7", "Contact phone number", "CONTACT_PHONE", "the telephone number"),
        ("1.8", "Contact fax number", "CONTACT_FAX", "the fax number, if there is one"),
        ("2", "Metadata update", "META_UPDATE", ""),
        ("2.1", "Metadata last certified", "META_CERTIFIED", "the date"),
        ("2.2", "Metadata last posted", "META_POSTED", "the date"),
        ("2.3", "Metadata last update", "META_LAST_UPDATE", "the date"),
        ("3", "Statistical presentation", "STAT_PRES", ""),
        ("3.1", "Data description", "DATA_DESCR", "what the statistics are about"),
        ("3.2", "Classification system", "CLASS_SYSTEM", "the classifications behind the codes"),
        ("3.3", "Coverage - sector", "COVERAGE_SECTOR", "the sectors covered"),
        ("3.4", "Statistical concepts and definitions", "STAT_CONC_DEF", "the definitions"),
        ("3.5", "Statistical unit", "STAT_UNIT", "what a record is"),
        ("3.6", "Statistical population", "STAT_POP", "the population of the records"),
        ("3.7", "Reference area", "REF_AREA", "the country or region"),
        ("3.8", "Coverage - Time", "COVERAGE_TIME", "the periods for which there are data"),
        ("3.9", "Base period", "BASE_PER", "not applicable to counts, unless there are indices"),
        ("4", "Unit of measure", "UNIT_MEASURE", "the unit"),
        ("5", "Reference period", "REF_PERIOD", "the day or period that records are of"),
        ("6", "Institutional mandate", "INST_MANDATE", ""),
        ("6.1", "Legal acts and other agreements", "INST_MAN_LA_OA", "the legal basis"),
        ("6.2", "Data sharing", "INST_MAN_SHAR", "agreements with other producers"),
        ("7", "Confidentiality", "CONF", ""),
        ("7.1", "Confidentiality - policy", "CONF_POLICY", "the law that protects the records"),
        ("7.2", "Confidentiality - data treatment", "CONF_DATA_TR", ""),
        ("8", "Release policy", "REL_POLICY", ""),
        ("8.1", "Release calendar", "REL_CAL_POLICY", "the calendar"),
        ("8.2", "Release calendar access", "REL_CAL_ACCESS", "the address of the calendar"),
        ("8.3", "User access", "REL_POL_US_AC", "who has access, and when"),
        ("9", "Frequency of dissemination", "FREQ_DISS", "the frequency"),
        ("10", "Accessibility and clarity", "", ""),
        ("10.1", "News release", "NEWS_REL", "news releases"),
        ("10.2", "Publications", "PUBLICATIONS", "publications"),
        ("10.3", "Online database", "ONLINE_DB", "the database"),
        ("10.4", "Micro-data access", "MICRO_DAT_ACC", "who has access to the records"),
        ("10.5", "Other", "DISS_OTHER", "other ways of dissemination"),
        ("10.6", "Documentation on methodology", "DOC_METHOD", "further documents"),
        ("10.7", "Quality documentation", "QUALITY_DOC", "further documents"),
        ("11", "Quality management", "QUALITY_MGMNT", ""),
        ("11.1", "Quality assurance", "QUALITY_ASSURE", "the procedures"),
        ("11.2", "Quality assessment", "QUALITY_ASSMNT", "the overall assessment"),
        ("12", "Relevance", "RELEVANCE", ""),
        ("12.1", "Relevance - User Needs", "USER_NEEDS", "the users and their needs"),
        ("12.2", "Relevance - User Satisfaction", "USER_SAT", "how it is measured"),
        ("12.3", "Completeness", "COMPLETENESS", "what regulations ask for that is missing"),
        ("13", "Accuracy and reliability", "ACCURACY", ""),
        ("13.1", "Accuracy - overall", "ACCURACY_OVERALL", "the main sources of error in records"),
        ("13.2", "Sampling error", "SAMPLING_ERR", "the design of the sample and its errors"),
        ("13.3", "Non-sampling error", "NONSAMPLING_ERR", ""),
        ("13.3.1", "Coverage error", "", "over- and under-coverage of the records"),
        ("13.3.2", "Measurement error", "", "errors in what records say"),
        ("13.3.3", "Non response error", "", "unit and item non-response"),
        ("13.3.4", "Processing error", "", "errors of coding and editing the records"),
        ("13.3.5", "Model assumption error", "", "models by which the records were made"),
        ("14", "Timeliness and punctuality", "TIMELINESS_PUNCT", ""),
        ("14.1", "Timeliness", "TIMELINESS", "the days from the reference period to publication"),
        ("14.2", "Punctuality", "PUNCTUALITY", "the delay after the announced date"),
        ("15", "Coherence and comparability", "COHER_COMPAR", ""),
        ("15.1", "Comparability - geographical", "COMPAR_GEO", "differences between areas"),
        ("15.2", "Comparability - over time", "COMPAR_TIME", "breaks in the series"),
        ("15.3", "Coherence - cross domain", "COHER_X_DOM", "differences from other statistics"),
        ("15.4", "Coherence - internal", "COHER_INTERNAL", ""),
        ("16", "Cost and burden", "COST_BURDEN", "costs, and the burden on respondents"),
        ("17", "Data revision", "DATA_REV", ""),
        ("17.1", "Data revision - policy", "REV_POLICY", "the policy"),
        ("17.2", "Data revision - practice", "REV_PRACTICE", "past and planned revisions"),
        ("18", "Statistical processing", "STAT_PROCESS", ""),
        ("18.1", "Source data", "SOURCE_TYPE", "where the records come from"),
        ("18.2", "Frequency of data collection", "FREQ_COLL", "the frequency"),
        ("18.3", "Data collection", "COLL_METHOD", "the method"),
        ("18.4", "Data validation", "DATA_VALIDATION", "how records were validated"),
        ("18.5", "Data compilation", "DATA_COMP", "editing, imputation and weighting of records"),
        ("18.6", "Adjustment", "ADJUSTMENT", "adjustments of the records, such as seasonal ones"),
        ("19", "Comment", "COMMENT_DSET", "anything else"),
    )
)  # fmt: skip


def write_quality(export: Export, folder: Path) -> None:
    """Write the report, for people and for programs."""
    text = export.language.text
    tables = [_facts_of(export, table) for table in export.tables]
    known = dict(_known(export, tables))
    lines = [f"# {text('q_title', title=markdown_text(export.title))}", "", text("q_preface"), ""]
    attributes = []
    for number, name, id, wanted in concepts_in(export.language):
        filled, is_asked = known.get(number, ""), bool(wanted) and number not in _COMPLETE
        missing = f"*{text('q_to_be_filled', wanted=wanted)}*" if is_asked else ""
        level = "#" * (2 + number.count("."))
        lines += [f"{level} S.{number} {name}", ""]
        for paragraph in filter(None, [filled, missing]):
            lines += [paragraph, ""]
        attributes.append(
            {"number": f"S.{number}", "id": id, "name": name, "value": filled or None}
            | ({"to_be_filled": wanted} if missing else {})
        )
    (folder / REPORT).write_text("\n".join(lines), encoding="utf-8", newline="\n")
    facts = {
        "structure": "SIMS 2.0",
        "title": export.title,
        "privacy": export.privacy,
        "attributes": attributes,
        "tables": tables,
    }
    content = json.dumps(facts, ensure_ascii=False, indent=1)
    (folder / FACTS).write_text(f"{content}\n", encoding="utf-8", newline="\n")


def concepts_in(language: Language) -> Sequence[Concept]:
    """The headings with their names, and what is asked for, in a language."""
    if language.is_english:
        return CONCEPTS
    own = _translated()[language.code]
    return [Concept(one.number, own[one.number][0], one.id, own[one.number][1]) for one in CONCEPTS]


@cache
def _translated() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Language -> number of a concept -> its name, and what is asked for."""
    file = resources.files("rpexplore.results.formats") / "texts" / "concepts.json"
    return json.loads(file.read_text("utf-8"))


# Where nothing but what a release knows is asked for.
_COMPLETE = {"2.3", "4", "7.2", "15.4"}


def _known(export: Export, tables: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """What the release knows, by the numbers of concepts, as Markdown; names mean nothing there."""
    imprint, sources, text = export.imprint, sources_of(export.results), export.language.text
    titles = [title for title in map(export.title_of, export.tables) if title]
    if imprint.publisher:
        yield "1.1", f"{markdown_text(imprint.publisher)}."
    yield "2.3", text("q_finished", created=export.created)
    yield "3.1", f"{export.kind}\n\n{_listed(export, titles)}"
    names = [
        title if title == name else f"{title} ({export.head(name)})"
        for name, title in ((name, export.head(title))
                            for name, title in export.attribute_titles.items())
    ]  # fmt: skip
    yield "3.2", _listed(export, names)
    if universes := sorted({source.universe for source in sources} - {""}):
        yield "3.6", text("q_population", conditions=markdown_text("; ".join(universes)))
    yield "4", text("q_unit", noun=capitalised(export.records))
    if imprint.period:
        yield "5", f"{imprint.period}."
    privacy = export.privacy
    formal = markdown_text(export.guarantee)
    if privacy["rho_is_known"]:
        definition = text("q_definition")
        rho = export.language.number(rho_text(Fraction(privacy["rho"])))
        formal = text("q_formal", definition=definition, unit=export.privacy_unit, rho=rho)
    yield "7.1", formal
    yield "7.2", _treatment(export)
    if imprint.license:
        yield "8.3", text("q_licence", address=imprint.license)
    yield "10.6", text("q_methodology")
    yield "13.1", _overall(export, tables)
    yield "13.2", text("q_sampling")
    if any(part.is_smooth for part in export.results.readers):
        yield "13.3.5", text("q_model")
    for part in export.results.readers:
        if part.known_tables:
            totals = [" × ".join(names) or text("q_all_records") for names in part.known_tables]
            yield "15.3", text("q_known", totals=markdown_text(export.language.joined(totals)))
    yield "15.4", _coherence(export)
    yield "17.1", text("q_revision")
    yield "18.5", _compilation(export)


def _treatment(export: Export) -> str:
    sources, text = sources_of(export.results), export.language.text
    is_gaussian = all(one.is_release for one in sources)
    parts = [
        text("q_gaussian_noise" if is_gaussian else "q_noise"),
        *export.noise_sentences,
        export.guarantee,
    ]
    for rule in sorted({one.person_rule for one in sources} - {""}):
        # Which is a sentence in English.
        said = rule if export.language.is_english else "records_per_person"
        parts.append(text("q_person_rule", rule=said))
    if any(one.neighbours != ADD_REMOVE for one in sources):
        parts.append(text("q_number_public"))
    for one in sources:
        parts += [text("q_exact", totals=" × ".join(names)) for names in one.exact]
    return "\n\n".join(dict.fromkeys(map(markdown_text, parts)))


def _overall(export: Export, tables: Sequence[Mapping[str, Any]]) -> str:
    """Errors of each table: standard errors, CV and grades."""
    language = export.language
    grades = [*(letter for letter, _ in FLAGS), "E"]
    heads = [*language.text("q_heads").split("|"), *grades]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for facts in tables[:_MOST_ROWS]:
        numbers = [*facts["standard_error"].values(), *facts["cv_quartiles"]]
        shares = facts["share_of_cells_by_grade"] or dict.fromkeys(grades)
        cells = [
            markdown_text(facts["title"]),
            language.number(f"{facts['cells']:,}"),
            *("–" if number is None else language.rounded(number) for number in numbers),
            *("–" if share is None else _share_in(language, share) for share in shares.values()),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    named = [
        language.text("q_grade", letter=letter, limit=_share_in(language, limit))
        for letter, limit in FLAGS
    ]
    named.append(language.text("q_grade_above", letter="E"))
    said = [language.text("q_cv", grades=", ".join(named))]
    if any(facts["errors_are_of_unbiased_figures"] for facts in tables):
        said.append(language.text("q_of_unbiased"))
    if len(tables) > _MOST_ROWS:
        lines += ["", language.text("q_all_tables", file=FACTS, n=len(tables))]
    return f"{' '.join(said)}\n\n" + "\n".join(lines)


def _share_in(language: Language, share: float) -> str:
    """ "24 %", in the signs of the language."""
    number, over = describe_share(share), "over "
    if number.startswith(over):
        return language.text("q_share_above", share=language.number(number.removeprefix(over)))
    return language.number(number)


def _facts_of(export: Export, table: ExportedTable) -> dict[str, Any]:
    """What the figures of a table say of their accuracy; None where no errors are known."""
    rows = table.item.frame  # accuracy is that of all figures, printed or not
    schema = Schema.of(rows)
    error_name, count_name = schema.error_and_count
    errors, counts = (rows[name].to_numpy(float) for name in (error_name, count_name))
    has_both = ~np.isnan(errors) & ~np.isnan(counts)
    errors, counts = errors[has_both], counts[has_both]
    cvs = np.where(errors == 0, 0.0, coefficients_of_variation(errors, counts))
    flags = quality_flags(cvs)
    quartiles = np.quantile(cvs, [0.25, 0.5, 0.75], method="inverted_cdf") if cvs.size else []
    finite = [float(one) if np.isfinite(one) else None for one in quartiles]
    return {
        "name": table.name,
        "title": export.title_of(table),
        "cells": table.n_rows,
        "errors_are_of_unbiased_figures": schema.has_unbiased and not schema.is_smooth,
        "standard_error": {
            "median": float(np.median(errors)) if errors.size else None,
            "largest": float(errors.max()) if errors.size else None,
        },
        "cv_quartiles": finite or [None] * 3,
        "share_of_cells_by_grade": {
            letter: float(np.mean(flags == letter)) for letter in (*(one for one, _ in FLAGS), "E")
        } if cvs.size else None,
    }  # fmt: skip


def _coherence(export: Export) -> str:
    labels = [label_in(export.language, part) for part in export.results.readers if part.is_biased]
    return " ".join([export.adding_up, *(f"{capitalised(label)}." for label in labels)])


def _compilation(export: Export) -> str:
    """How figures were made, and of what."""
    sources, text = sources_of(export.results), export.language.text
    label = export.privacy["label"] if export.language.is_english else export.figures
    key = "q_made_of_one" if len(sources) == 1 else "q_made_of"
    parts = []
    for one in sources:
        said = [f"`{one.name}`"]
        for name, value in one.unknown_values.items():
            said.append(markdown_text(text("q_unknown", name=name, value=value)))
        for name, value in one.missing_values.items():
            said.append(markdown_text(text("q_missing", name=name, value=value)))
        parts.append(f"- {'; '.join(said)}")
    return f"{text(key, label=label, n=len(sources))}\n\n" + "\n".join(parts)


def _listed(export: Export, texts: list[str]) -> str:
    shown = [f"- {markdown_text(text)}" for text in texts[:50]]
    if len(texts) > 50:
        shown.append(f"- {export.language.text('q_more', n=len(texts) - 50)}")
    return "\n".join(shown)


FORMAT = Format(
    "Quality report (SIMS)",
    ENGLISH.text("files_quality"),
    write_quality,
    said_in="files_quality",
)
