"""Exports in other languages than English: all texts and numbers, and nothing left in English."""

import json
import re
from functools import cache
from html import unescape
from importlib.resources import files
from pathlib import Path
from string import Formatter
from xml.etree import ElementTree

import numpy as np
import openpyxl
import pandas as pd
import pytest
from csvw import CSVW
from pyaxis.pyaxis import parse

import rpexplore as rp
from rpexplore.domain.levels import Level
from rpexplore.domain.survey import SurveyDesign
from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_release import NO_GUARANTEE, bound_sentence, texts_of_bound
from rpexplore.results.formats.export import Export
from rpexplore.results.formats.languages import LANGUAGES, Language, Sentence, texts_of
from rpexplore.results.formats.publishing import FORMATS, publish
from rpexplore.results.formats.writers.quality import CONCEPTS, concepts_in
from rpexplore.results.results import load_any_results
from rpexplore.workload.bases import Hierarchy, Prefix, Ranges, Windows
from rpexplore.workload.query_definitions import stated_from_text
from rpexplore.workload.table_text import query_matrix
from tests.results.formats.conftest import IMPRINT

TRANSLATED = [name for name, one in FORMATS.items() if one.said_in]
# What only people know, and the codebook: it stays as it is.
OWN = ("Body height", "women, tall", '"all"', "`own counts`")
# Words of every English sentence, and of no other language here.
ENGLISH = re.compile(r"\b(?:the|of|and|with|is|are|by|above|counts?|records?|figures|or|to)\b")


def test_every_language_has_every_text_with_the_same_placeholders():
    of_each = [texts_of(code) for code in LANGUAGES]
    assert all(texts.keys() == of_each[0].keys() for texts in of_each)
    for key in of_each[0]:
        texts = [texts[key] for texts in of_each]
        assert all(texts), key
        named = [sorted(name for _, name, *_ in Formatter().parse(one) if name) for one in texts]
        assert named == [named[0]] * len(LANGUAGES), key
        assert not any(map(ENGLISH.search, texts[1:])), key


def test_every_language_has_every_heading_of_the_quality_report():
    for code in LANGUAGES:
        own = concepts_in(Language(code))
        assert [one.number for one in own] == [one.number for one in CONCEPTS]
        for concept, english in zip(own, CONCEPTS, strict=True):
            assert concept.id == english.id
            assert concept.name
            assert bool(concept.wanted) == bool(english.wanted)
            assert code == "en" or not ENGLISH.search(f"{concept.name} {concept.wanted}")


def test_the_quality_report_has_the_same_figures_in_every_language(german, exports):
    own, english = (
        json.loads((folder / "quality.json").read_text("utf-8"))
        for folder in (german("released"), exports["released"].folder)
    )
    for table in (*own["tables"], *english["tables"]):
        del table["title"]
    assert own["tables"] == english["tables"]
    text = (german("released") / "quality.md").read_text("utf-8")
    assert "## S.13 Genauigkeit und Zuverlässigkeit" in text
    assert "*Vom Produzenten einzutragen: der Name.*" in text
    assert "A (VK bis 5 %), B (VK bis 10 %)" in text


def test_numbers_are_written_as_in_the_language():
    said = [Language(code).text("first_rows", n=1000, n_all=2500) for code in LANGUAGES]
    assert said[0] == "The first 1,000 of 2,500 rows are shown."
    assert said[1] == "Die ersten 1.000 von 2.500 Zeilen sind dargestellt."
    assert "1\u202f000" in said[2]
    assert [Language(code).rounded(1234.56, 5) for code in LANGUAGES] == [
        "1,234.6", "1.234,6", "1\u202f234,6", "1.234,6",
    ]  # fmt: skip
    assert Language("fr").text("quality_term") == "Qualité"
    assert "(95\xa0%)\xa0: x" in Language("fr").text("margin", listed="x")
    design = Sentence("sampling", {"design": SurveyDesign(1.36, sampling_fraction=0.015)})
    assert Language("de").say(design).endswith("(Designeffekt 1,36, Auswahlsatz 1,5 %).")
    assert Language("es").joined(["sexo", "edad", "ingresos"]) == "sexo, edad e ingresos"


def test_labels_that_the_codebook_does_not_have_are_translated():
    german = Language("de")
    ages = rp.Attribute("age", rp.Integers(0, 5, step=2, missing=(("9", "not to say"),)))
    kinds = rp.Attribute("kind", rp.Categories(("a", "b", "c"), ("x", "y or z", "all")))
    own = {"not to say", "x", "y or z", "all"}

    def labels(basis, attribute) -> list[str]:
        rows = query_matrix(basis, attribute).labels()
        return [german.label(row, own) for row in rows]

    assert labels(Ranges(), ages)[:3] == ["0 bis 1", "0 bis 3", "0 bis 5"]
    assert labels(Windows(2), kinds)[1:] == ["x bis y or z", "y or z bis all"]
    assert labels(Prefix(), kinds) == ["bis x", "bis y or z", "bis all"]
    levels = query_matrix(Hierarchy((2,)), ages).labels()
    assert [german.label(row, {"not to say"}) for row in levels[:2]] == ["insgesamt", "0 bis 3"]
    assert german.label("0 to under 5 or not to say", own) == "0 bis unter 5 oder not to say"
    assert german.label("up to somewhere", own) == "up to somewhere"  # a name of an area, say


@pytest.fixture(scope="module")
def german(sources, tmp_path_factory):
    """Gives the export in German of a kind of results."""
    top = tmp_path_factory.mktemp("german")

    @cache
    def export(kind: str) -> Path:
        publish(sources / kind, top / kind, formats=TRANSLATED, imprint=IMPRINT, language="de")
        return top / kind

    return export


@pytest.mark.parametrize(
    "kinds",
    [
        ("released", "areas", "own counts", "amounts"),
        ("adaptive", "unstated"),
        pytest.param(("whole", "smooth", "guesses"), marks=pytest.mark.nightly),
    ],
    ids=["released", "other noise", "processed"],
)
def test_nothing_is_left_in_english(german, kinds):
    for folder in map(german, kinds):
        page = (folder / "tables.html").read_text("utf-8")
        assert '<html lang="de">' in page
        texts = [unescape(re.sub("<(style|script)>.*?</\\1>|<[^>]*>", " ", page, flags=re.S))]
        book = openpyxl.load_workbook(folder / "crosstabs.xlsx")
        cells = (cell.value for sheet in book for row in sheet.iter_rows() for cell in row)
        texts += [text for text in cells if isinstance(text, str)]
        for path in (folder / "px").iterdir():  # codes are the same in every language
            lines = path.read_text("utf-8").splitlines()
            texts += [line for line in lines if not line.startswith("CODES(")]
        structure = ElementTree.parse(folder / "sdmx/structure.xml").getroot()
        named = [one for one in structure.iter() if one.tag.endswith(("}Name", "}Description"))]
        assert {one.get("{http://www.w3.org/XML/1998/namespace}lang") for one in named} == {"de"}
        texts += [one.text or "" for one in named]
        for path in (folder / "jsonstat").iterdir():
            data = json.loads(path.read_text("utf-8"))
            texts += [data["label"], *data["note"]]
            for dimension in data["dimension"].values():
                texts += [dimension["label"], *dimension["category"]["label"].values()]
            figures = dimension["category"]  # the last one
            texts += [unit["label"] for unit in figures["unit"].values()]
            texts += [note for notes in figures["note"].values() for note in notes]
        described = json.loads((folder / "csv-metadata.json").read_text("utf-8"))
        assert described["@context"][1] == {"@language": "de"}
        assert CSVW(str(folder / "csv-metadata.json"), validate=True).is_valid
        texts += [described[f"dc:{name}"] for name in ("description", "provenance")]
        for table in described["tables"]:
            texts.append(table["dc:title"])
            for column in table["tableSchema"]["columns"]:
                texts += [*column.get("titles", [])[1:], column.get("dc:description", "")]
            rows = pd.read_csv(folder / table["url"], dtype=str, keep_default_na=False)
            assert list(rows)[-1] == "obs_status"  # heads are names, the same in every language
            for name in rows.columns[rows.columns.str.endswith(("_label", "note"))]:
                texts += rows[name].unique().tolist()
        texts.append((folder / "README.md").read_text("utf-8"))
        texts.append((folder / "quality.md").read_text("utf-8"))
        quality = json.loads((folder / "quality.json").read_text("utf-8"))
        for concept in quality["attributes"]:
            texts += [concept["name"], concept["value"] or "", concept.get("to_be_filled", "")]
        for text in texts:
            for own in (*vars(IMPRINT).values(), *OWN):
                text = text.replace(own, "") if own else text
            assert not (left := ENGLISH.search(text)), text[left.start() - 60 : left.end() + 60]


def test_words_that_stand_for_all_are_translated(german):
    kinds = ("areas", "own counts")
    pages = {kind: (german(kind) / "tables.html").read_text("utf-8") for kind in kinds}
    assert "Datensätze nach sex und value (insgesamt)" in pages["areas"]  # the level of all areas
    assert "Werte nach Zählung" in pages["own counts"]
    assert "all</th>" in pages["own counts"]  # as somebody called a count


def test_codes_are_the_same_in_every_language_and_labels_are_translated_beside_them(tmp_path):
    status = rp.Attribute("status", rp.Categories(("1", "2", "3"), ("single", "wed", "other")))
    workload = rp.Workload.of(rp.Domain((status,)), [("status",)])
    plan = rp.plan(
        workload.with_bases({"status": Ranges()}),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=1),
    )
    records = pd.DataFrame({"status": ["1", "2", "3"] * 5})
    rp.release(plan, records, tmp_path / "out", name="made up", ledger=tmp_path / "ledger")
    for language in ("en", "de"):
        publish(tmp_path / "out", tmp_path / language, formats=["csvw"], language=language)
    german, english = (
        pd.read_csv(next((tmp_path / language / "tables").glob("*.csv")), dtype=str)
        for language in ("de", "en")
    )
    pd.testing.assert_frame_equal(german[english.columns], english)
    assert [*german.columns][:2] == ["status", "status_label"]
    labels = dict(zip(german["status"], german["status_label"], strict=True))
    assert labels["single to wed"] == "single bis wed"
    assert labels["other"] == "other"
    assert CSVW(str(tmp_path / "de/csv-metadata.json"), validate=True).is_valid


def test_sums_and_means_are_said_in_the_language_with_their_limits(german):
    folder = german("amounts")
    for end, label, meaning in (
        ("income", "Summe (EUR)", "Die verrauschte Summe der Beträge"),
        ("income_means", "Mittelwert (EUR)", "Der Mittelwert: die verrauschte Summe"),
    ):
        (path,) = (folder / "tables").glob(f"*_{end}.csv")
        assert pd.read_csv(path)["income_label"].iloc[0] == label
        (px,) = (folder / "px").glob(f"*_{end}.px")
        keywords = parse(str(px), encoding="utf-8")["METADATA"]
        assert keywords["VALUES(income)"][0] == label
        (said,) = keywords["VALUENOTE(Kennzahl,Wert)"]
        assert said.startswith(meaning)
        assert said.endswith("Beträge unter 0 EUR zählen als 0, solche über 9 EUR als 9.")
    assert "solche über 9 EUR als 9." in (folder / "README.md").read_text("utf-8")


def test_own_sums_have_their_units_in_the_language(tmp_path):
    domain = rp.Domain(
        (
            rp.Attribute("income", rp.Amounts(0, 9, unit="EUR")),
            rp.Attribute("w", rp.Amounts(0, 4, are_weights=True)),
        )
    )
    lines = "earned: sum(income) ± 90\nweighted: sum(w) ± 9\neverybody: total ± 4"
    plan = rp.plan(stated_from_text(domain, lines).queries, budget=rp.Budget(rho=1))
    records = pd.DataFrame({"income": [5], "w": [2]})
    rp.release(plan, records, tmp_path / "r", name="made up", ledger=tmp_path / "ledger")
    folder, formats = tmp_path / "de", ["csvw", "sdmx", "px", "html"]
    publish(tmp_path / "r", folder, formats=formats, language="de")
    table, observations, px = (
        next((folder / place).glob("*answers*")) for place in ("tables", "sdmx", "px")
    )
    assert pd.read_csv(table)["unit"].tolist() == ["EUR", "gewichtete Anzahl", "Datensätze"]
    units = pd.read_csv(observations)["UNIT_MEASURE"].tolist()
    assert units == ["EUR", "WEIGHTED_RECORDS", "RECORDS"]
    notes = parse(str(px), encoding="utf-8")["METADATA"]
    assert notes["CELLNOTE(earned,*)"] == ["Einheit: EUR"]
    page = (folder / "tables.html").read_text("utf-8")
    assert [word in page for word in (">earned (EUR)<", ">everybody<", ">Wert<")] == [True] * 3


def test_levels_by_a_width_are_translated_and_stated_ones_are_not(tmp_path):
    levels = (Level("ten", ("0 to 9",) * 10 + ("10 to 19",) * 10),
              Level("adult", ("under age",) * 18 + ("of age",) * 2))  # fmt: skip
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, 19), levels=levels),))
    workload = rp.Workload.of(domain.with_levels, [("age@ten",), ("age@adult",)])
    plan = rp.plan(rp.Request(tables=workload, budget=rp.Budget(rho=1)))
    rp.release(plan, pd.DataFrame({"age": [3]}), tmp_path / "r", name="x", ledger=tmp_path / "l")
    publish(tmp_path / "r", tmp_path / "fr", formats=["csvw"], language="fr")
    frames = [pd.read_csv(path) for path in sorted((tmp_path / "fr/tables").glob("*.csv"))]
    assert frames[0]["age_ten"].tolist() == ["0 to 9", "10 to 19"]
    assert frames[0]["age_ten_label"].tolist() == ["0 à 9", "10 à 19"]
    assert frames[1]["age_adult"].tolist() == ["under age", "of age"]
    assert "age_adult_label" not in frames[1]


def test_words_for_yes_and_no_are_codes(german):
    (path,) = (german("own counts") / "tables").glob("*.csv")
    assert set(pd.read_csv(path)["met"]) <= {"yes", "no"}
    described = json.loads((german("own counts") / "csv-metadata.json").read_text("utf-8"))
    columns = described["tables"][0]["tableSchema"]["columns"]
    meanings = {column["name"]: column.get("dc:description", "") for column in columns}
    assert meanings["met"].endswith("yes (ja) oder no (nein).")


def test_px_files_say_their_language_and_the_same_figures(german, exports):
    path = sorted((german("released") / "px").iterdir())[-1]
    keywords = parse(str(path), encoding="utf-8")["METADATA"]
    assert keywords["LANGUAGE"] == ["de"]
    assert keywords["VALUES(Kennzahl)"][:2] == ["Wert", "Standardfehler"]
    assert keywords["CODES(Kennzahl)"][:2] == ["value", "standard_error"]
    in_english = (exports["released"].folder / "px" / path.name).read_text("utf-8")
    assert path.read_text("utf-8").partition("DATA=")[2] == in_english.partition("DATA=")[2]


def test_the_guarantee_has_the_numbers_of_the_release(german, exports):
    plan = exports["released"].plan
    said = (german("released") / "README.md").read_text("utf-8")
    assert "ρ = 0,1 für einen Datensatz" in said
    for epsilon in plan.epsilon_texts:  # "ε = 2.1462 at δ = 1e-6"
        assert epsilon.replace(".", ",").replace(" at ", " bei ") in said


def test_a_cost_that_nobody_stated_is_said_in_every_language(sources):
    for language in map(Language, LANGUAGES):
        for kind, has_rho in (("partly stated", True), ("unstated", False)):
            export = Export(sources / kind, language=language)
            whom = language.unit("person")
            assert export.noise_sentences[0] == language.text("noisy_unstated", **whom)
            said = export.guarantee
            assert (f"ρ = {language.number('0.1')}" in said) == has_rho
            assert ("δ" in said) == has_rho
            assert not re.search("ρ = 0 |δ = ", said)
            assert language.is_english or not ENGLISH.search(said.split("SHA-256")[0]), said


def test_bounds_of_adaptive_tables_have_their_numbers_in_every_language(sources):
    release = load_any_results(sources / "adaptive")
    (part,) = release.readers
    limits = part.bounds["error_bound_95"].to_numpy()
    total = part.table("sex")["value"].sum()
    in_english = [bound_sentence(item.bound) for item in release.items]
    assert [*Export(sources / "adaptive").bounds.values()] == in_english
    for code in ("de", "fr", "es"):
        export = Export(sources / "adaptive", language=Language(code))
        assert list(export.bounds) == [item.name for item in release.items]
        for sentence, limit in zip(export.bounds.values(), limits, strict=True):
            numbers = re.findall("[0-9][0-9.,\u202f]*", sentence)[:2]
            shown = [float(re.sub("[.\u202f]", "", one).replace(",", ".")) for one in numbers]
            assert limit <= shown[0] <= 1.01 * (limit + 1)
            assert 1 - 1e-9 <= shown[1] / (100 * limit / total) <= 1.1
    assert texts_of_bound(np.nan, 200) == ("", "")
    assert Language().text("no_bound") == bound_sentence(NO_GUARANTEE)


def test_what_is_not_translated_is_refused(sources, tmp_path):
    for kind, formats, language, words in (
        ("released", ["html", "dcat"], "de", "The format 'dcat' is in English only"),
        ("released", ["html"], "xx", "Exports have no language 'xx'; choose en"),
    ):
        with pytest.raises(ReleaseError, match=words):
            publish(sources / kind, tmp_path / "out", formats=formats, language=language)
        assert not (tmp_path / "out").exists()


@pytest.mark.by_day(5)
@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ({"neighbours": "replace"}, "verbirgt nicht, wer in den Daten vorkommt"),
        ({"neighbours": "replace"}, "Andere Angaben darin ändern die Verteilung"),
        ({"exact": ["sex"]}, "Nur die Summen nach sex sind exakt"),
        ({"exact": ["sex"]}, "(von jeder exakten Summe alle oder keine)"),
        (
            {"period": "quarter", "max_records_per_person": 2},
            "einem Datensatz je Wert von „quarter“ und Datensätzen in höchstens 2 davon: ",
        ),
        (
            {"max_records_per_person": 3, "unit_noun": "household"},
            "für einen Haushalt mit höchstens 3 Datensätzen: ",
        ),
        ({"unit_noun": "enterprise"}, "für ein Unternehmen, das heißt einen Datensatz: "),
        (
            {"max_records_per_person": 2, "unit_noun": "lighthouse"},
            "schützt die Einheiten (lighthouse) in den Daten.",
        ),
        ({"max_records_per_person": 1}, "für eine Person mit höchstens einem Datensatz: "),
        ({"max_records_per_person": 1200}, "für eine Person mit höchstens 1.200 Datensätzen: "),
    ],
)
def test_a_guarantee_for_another_unit_is_translated(tmp_path, unit, words):
    domain = rp.Domain.from_sizes({"quarter": 2, "sex": 2})
    budget = rp.Budget(rho=1, **unit)
    workload = rp.Workload.of(domain, [("quarter", "sex")])
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget)
    records = pd.DataFrame({"quarter": ["0"], "sex": ["1"], "id": ["a"]})
    most = budget.max_records_per_person
    rule = None if most is None else rp.PersonRule("id", most)
    rp.release(plan, records, tmp_path / "out", name="s", ledger=tmp_path / "l", person_rule=rule)
    publish(tmp_path / "out", tmp_path / "page", formats=["html"], language="de")
    page = (tmp_path / "page/tables.html").read_text("utf-8")
    assert words in page
    assert ("ob ein bestimmter Haushalt in den Daten vorkommt" in page) == ("Haushalt" in words)


def test_every_word_for_who_is_protected_is_in_every_language():
    nouns = json.loads((files("rpexplore.results.formats") / "texts/units.json").read_text("utf-8"))
    for noun in ("person", "household", "enterprise", "patient", "*"):
        assert noun in nouns
    for noun in nouns:
        of_each = [Language(code).unit(noun) for code in LANGUAGES]
        assert all(words.keys() == of_each[0].keys() for words in of_each)
        assert all(filter(None, words.values()) for words in of_each)
    assert Language("fr").unit("farm")["given"] == "une exploitation agricole donnée"
    assert Language().unit("person")["all"] == "the people"
    assert Language().unit("family")["all"] == "the families"
