"""Codebook files: exact round trips, and refusals that name the line or field."""

import json
import tempfile
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.common.text import as_seen
from rpexplore.domain import codebook, codebook_rows
from rpexplore.domain.attribute import MAX_ATTRIBUTES
from rpexplore.domain.codebook import attributes_from_schema, schema_from_attributes
from rpexplore.domain.codebook_remarks import remarks_on_codebook
from rpexplore.errors import DomainError
from tests.support.strategies import categories, described_domains, words

E, E_AND_ACCENT = "\u00e9", "e\u0301"  # one letter in two Unicode forms


@given(described_domains())
@settings(deadline=None, max_examples=40)
def test_json_round_trip_is_exact(domain):
    text = domain.text("codebook.json")
    again = Domain.parse(text, "codebook.json")
    assert again == domain
    assert again.text("codebook.json") == text


@given(described_domains(categories(), titles=False))
@settings(deadline=None, max_examples=40)
def test_csv_round_trip_is_exact_or_refused(domain):
    """Values must match the records to the letter: blanks and line ends are part of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codebook.csv"
        try:
            domain.save(path)
        except DomainError:
            return
        assert Domain.load(path) == domain


@pytest.mark.parametrize("value", ["a,b", 'say "hi"', "two\nlines", "Zürich – 北京", "#", "'"])
def test_csv_holds_awkward_texts(value):
    domain = Domain((Attribute("x", Categories((value, "plain"), ("label, " + value, "p"))),))
    assert Domain.parse(domain.text("c.csv"), "c.csv") == domain


@st.composite
def grouped_domains(draw):
    """Domains, some of whose attributes have groups of any depth."""
    level = words().filter(lambda name: " > " not in f" {name.strip()} ")
    attributes = []
    for attribute in draw(described_domains(categories(), titles=False)):
        path = st.lists(level, max_size=3)
        count = {"min_size": attribute.size, "max_size": attribute.size}
        groups = draw(st.just([]) | st.lists(path, **count))
        names = {name for path in groups for name in path}
        assume(len({as_seen(normalize("NFC", name)) for name in names}) == len(names))
        attributes.append(Attribute(attribute.name, attribute.values, groups=tuple(groups)))
    return Domain(tuple(attributes))


@given(grouped_domains(), st.sampled_from(["c.json", "c.csv"]))
@settings(deadline=None, max_examples=60)
def test_groups_round_trip(domain, filename):
    try:
        text = domain.text(filename)
    except DomainError:
        return
    assert Domain.parse(text, filename) == domain


GROUPED = Attribute("place", Categories(("a", "b", "c")), groups=(("S", "E"), ("N",), ()))


def test_how_groups_are_written():
    other = Attribute("sex", Categories(("f",)))
    assert Domain((GROUPED, other)).text("c.csv").splitlines() == [
        "attribute,value,label,group",
        "place,a,,S > E",
        "place,b,,N",
        "place,c,,",
        "sex,f,,",
    ]
    assert schema_from_attributes([GROUPED])["fields"][0]["groups"] == [["S", "E"], ["N"], []]
    ages = Attribute("age", Integers(0, 1), groups=(("young",), ("old",)))
    assert Domain((ages,)).text("c.csv").splitlines()[1:] == ["age,0,,young", "age,1,,old"]


@pytest.mark.parametrize(("filename"), ["c.csv", "c.json"])
def test_without_groups_codebooks_do_not_mention_them(filename):
    domain = Domain((Attribute("x", Categories(("a", "b")), groups=((), ())),))
    assert "group" not in domain.text(filename)


def test_blanks_around_groups_do_not_matter():
    domain = Domain.parse("attribute,value,Group\nx,a, S >  E \nx,b,S\nx,c, \n", "c.csv")
    assert domain["x"].groups == (("S", "E"), ("S",), ())


def test_csv_lists_whole_numbers_one_by_one():
    domain = Domain((Attribute("age", Integers(0, 2)),))
    again = Domain.parse(domain.text("c.csv"), "c.csv")
    assert again == Domain((Attribute("age", Categories(("0", "1", "2"))),))


@pytest.mark.parametrize("values", [Integers(0, 9, 5), Bins((0, 1))])
def test_csv_refuses_what_it_cannot_say(values):
    with pytest.raises(DomainError, match=r"'age' groups numbers.* \.json"):
        Domain((Attribute("age", values),)).text("c.csv")


def test_columns_of_other_names_and_separators(tmp_path):
    path = tmp_path / "codes.txt"
    text = 'Variable;Anm;Code;Bedeutung\nGeschlecht;a;;\n;;1;Mann\n;b;2;Frau\nLand;;"1;5";\n'
    columns = {"attribute": "Variable", "value": "Code", "label": "Bedeutung"}
    sex = Attribute("Geschlecht", Categories(("1", "2"), ("Mann", "Frau")))
    for content in (text.encode(), text.encode("utf-16")):
        path.write_bytes(content)
        land = Attribute("Land", Categories(("1;5",)))
        assert Domain.load(path, columns=columns) == Domain((sex, land))
    path.write_text("Code\tVariable|\n2\tx\n")
    named = {"attribute": "Variable|", "value": "Code"}
    assert Domain.load(path, columns=named) == Domain((Attribute("x", Categories(("2",))),))
    with pytest.raises(DomainError, match=r"must have the column 'Var' once, which is to be"):
        Domain.load(path, columns=named | {"attribute": "Var"})
    old = Domain.parse('"attribute";"value"\r"sex";"a,b"\r', "c.csv")  # lines as of an old Mac
    assert old == Domain((Attribute("sex", Categories(("a,b",))),))


def test_csv_header_in_any_case_and_order_without_labels():
    text = "Value , ATTRIBUTE\nm,sex\nf,sex\n\n10,age\n"
    domain = Domain.parse(text, "c.csv")
    assert [a.name for a in domain.attributes] == ["sex", "age"]
    assert domain["sex"].values == Categories(("m", "f"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"c\.csv must have a header .* got no header"),
        ("name,value\nsex,m\n", r"c\.csv must have a header .* got .name., .value."),
        ("attribute,label\nsex,m\n", r"c\.csv must have a header .* got .attribute., .label."),
        ("attribute,value\n", r"c\.csv has a header but no rows"),
        ("attribute,value\nsex,m\nsex,\n", r"line 3: .* attribute 'sex' and value ''"),
        ("attribute,value\n,f\nsex,m\n", r"line 2: .* attribute .. and value .f."),
        ("attribute,value\nsex\n", r"line 2: "),
        ("attribute,value,value\nsex,m,f\n", r"c\.csv has the column value twice"),
        ("attribute,value\nsex,a\x00b\n", r"'sex': .* that files can hold .* got 'a\\x00b'"),
        (f"attribute,value\nx,{E}\nx,{E_AND_ACCENT}\n", r"in two Unicode forms.* listed twice"),
        (f"attribute,value\n{E},1\n{E_AND_ACCENT},1\n", r"in the domain twice"),
        ("attribute,value\nsex,m\nsex,m\n", r"'sex': The category 'm' is listed twice"),
        ("attribute,value,group\nx,a,S > \n", r"'x' must be texts that are not empty, got ''"),
        ("attribute,value,group\nx,a,S > > E\n", r"'x' must not hold ' > '"),
        ("attribute,value,label\nsex,1,x\nsex,2,x\n", r"'sex': The label 'x' stands for two"),
        # A forgotten quote would silently shorten a label.
        ("attribute,value,label\njob,1,Managers, directors\n", r"line 2: .*more"),
        ('attribute,value,label\njob,1,Managers\njob,2,"' + "x" * 200_000, r"c\.csv"),
    ],
)
def test_unusable_csv(text, message):
    with pytest.raises(DomainError, match=message):
        Domain.parse(text, "c.csv")


def test_table_schema_written_by_others():
    fields = [
        {"name": "sex", "type": "string", "constraints": {"enum": ["m", "f"], "required": True}},
        {"name": "code", "type": "integer", "title": "Code", "constraints": {"enum": [1, 2]}},
        {"name": "flag", "type": "boolean"},
        {"name": "yes", "type": "boolean", "constraints": {"enum": [True]}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
        {"name": "rank", "type": "integer", "categories": [{"value": 1, "label": "low"}, 2]},
        {
            "name": "part",
            "categories": [{"value": "b", "label": "B"}],
            "constraints": {"enum": ["a", "b"]},
        },
    ]
    domain = Domain.parse(json.dumps({"fields": fields, "missingValues": [""]}), "s.json")
    assert domain["sex"].values == Categories(("m", "f"))
    assert domain["code"] == Attribute("code", Categories(("1", "2")), "Code")
    assert domain["flag"].values == Categories(("true", "false"))
    assert domain["yes"].values == Categories(("true",))
    assert domain["age"].values == Integers(0, 99)
    assert domain["rank"].values == Categories(("1", "2"), ("low", "2"))
    assert domain["part"].values == Categories(("a", "b"), ("a", "B"))


# As frictionless 5.21 writes it, which finds it valid.
PACKAGE = """{"name": "survey", "resources": [{"name": "people", "type": "table",
 "path": "people.csv", "scheme": "file", "format": "csv", "mediatype": "text/csv",
 "encoding": "utf-8", "schema": {"fields": [
  {"name": "sex", "type": "string", "title": "Sex", "missingValues": ["x"],
   "constraints": {"enum": ["f", "m"]}},
  {"name": "rank", "type": "integer", "missingValues": ["-9", ""], "constraints": {"enum": [1, 2]}},
  {"name": "flag", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]},
  {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}],
 "missingValues": ["", "NA"]}}]}"""


def test_missing_values_of_a_data_package(tmp_path):
    domain = Domain.parse(PACKAGE, "datapackage.json")
    missing = ("Missing",)
    assert domain == Domain(
        (
            Attribute("sex", Categories(("f", "m", "x")), "Sex", ((), (), missing)),
            Attribute("rank", Categories(("1", "2", "-9")), "", ((), (), missing)),
            Attribute("flag", Categories(("yes", "no"))),
            Attribute("age", Integers(0, 99)),
        )
    )
    path = tmp_path / "datapackage.json"
    path.write_text(PACKAGE, "utf-8")
    (remark,) = remarks_on_codebook(path)
    assert "no answer in the whole table ('NA') are in no attribute" in remark
    path.write_text(PACKAGE.replace('["", "NA"]', "5"), "utf-8")  # which says nothing
    assert remarks_on_codebook(path) == []
    # One of its tables by itself, and missing values with labels (of version 2).
    resource = json.loads(PACKAGE)["resources"][0]
    resource["schema"]["fields"][0]["missingValues"] = [{"value": "x", "label": "Refused"}, "f"]
    domain = Domain.parse(json.dumps(resource), "people.resource.json")
    assert domain["sex"].labels() == ["f", "m", "Refused"]
    assert domain["sex"].groups == (missing, (), missing)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"type": "boolean", "trueValues": []}, '"trueValues" must be a list of texts'),
        ({"type": "boolean", "trueValues": ["0"]}, "'0' is listed twice, as a category or"),
        ({"constraints": {"enum": ["f"]}, "missingValues": "x"}, "must be a list, got 'x'"),
        (
            {
                "constraints": {"enum": ["f"]},
                "missingValues": [{"value": " ", "label": "not stated"}],
            },
            "for what is missing, has the label 'not stated', and values that are listed have",
        ),
        (
            {"constraints": {"enum": ["f"]}, "missingValues": ["x"], "groups": [["a"]]},
            "missingValues 'x' are in no group",
        ),
    ],
)
def test_missing_values_that_cannot_be_used(more, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_schema({"fields": [{"name": "sex", **more}]})


def test_years_and_numbers_written_as_texts():
    fields = [
        {"name": "year", "type": "year", "constraints": {"minimum": "2000", "maximum": "2010"}},
        {"name": "age", "constraints": {"minimum": 0.0, "maximum": "99", "step": "10"}},
        {"name": "code", "constraints": {"enum": [1.0, 2]}},
    ]
    schema = {"fields": fields}
    domain = Domain.parse(json.dumps(schema), "s.json")
    assert domain["year"].values == Integers(2000, 2010)
    assert domain["age"].values == Integers(0, 99, 10)
    assert domain["code"].values == Categories(("1", "2"))
    package = {"resources": [{"name": "people", "schema": schema}, {"name": "notes"}]}
    assert Domain.parse(json.dumps(package), "datapackage.json") == domain


def test_names_and_values_are_kept_in_one_unicode_form():
    domain = Domain.parse(
        f"attribute,value,label,group\n{E_AND_ACCENT},{E_AND_ACCENT},,\n", "c.csv"
    )
    assert domain == Domain((Attribute(E, Categories((E,))),))
    assert E_AND_ACCENT in domain
    assert domain[E_AND_ACCENT] is domain[E]
    grouped = Attribute("a", Categories(("1",)), E_AND_ACCENT, groups=((E_AND_ACCENT,),))
    assert (grouped.label, grouped.groups) == (E, ((E,),))


def field(**content):
    return json.dumps({"fields": [{"name": "x", **content}]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"s\.json must be .*: it is not valid JSON \(.* line 1"),
        ("[" * 100_000, r"s\.json"),
        (field(bins=[0, 1]).replace("1]", "9" * 5000 + "]"), r"s\.json|'x'"),
        ("[]", r'"fields"'),
        ('{"fields": []}', r'"fields"'),
        (
            '{"resources": [{"schema": {}}, {"schema": {}, "name": null}]}',
            r"s\.json .* holds 2 tables, 'table 1', 'table 2'; take",
        ),
        (
            '{"resources": [{"schema": {}}, {"schema": {}, "name": "table 1"}]}',
            r"holds 2 tables, 'table 2', 'table 1'; take",
        ),
        (
            '{"resources": [{"schema": {}, "name": "a"}, {"schema": {}, "name": "a"}]}',
            r"holds two tables named 'a'; rename one",
        ),
        ('{"resources": [{"schema": "x.json"}]}', r"the name of a file with it"),
        ('{"fields": [{"title": "x"}]}', r'Field 1 .* "name"'),
        ('{"fields": ["x"]}', r"Field 1 "),
        (field(), r"'x': its values are not known"),
        (field(title=3), r'"title" of field \'x\' must be a text, got 3'),
        (field(constraints=[]), r"'x': \"constraints\" must be an object"),
        (field(constraints={"enum": "abc"}), r"'x': \"enum\" must be a list, got 'abc'"),
        (field(constraints={"enum": []}), r"'x' must have 1 to .* got 0"),
        (field(constraints={"enum": ["a", "a"]}), r"'x': The category 'a' is listed twice"),
        (field(constraints={"enum": ["a", ""]}), r"'x': .* not empty, got ''"),
        (field(constraints={"enum": [1.5]}), r"'x': .* got 1.5"),
        (field(constraints={"enum": [None]}), r"'x': .* got null"),
        (field(constraints={"enum": ["1", 1]}), r"'x': The category '1' is listed twice"),
        (field(categories={"a": 1}), r"'x': \"categories\" must be a list"),
        (field(categories=["a", {"value": "a"}]), r"'x': The category 'a' is listed twice"),
        (
            field(categories=["z"], constraints={"enum": ["a"]}),
            r"'x': The category 'z' is not in constraints.enum",
        ),
        (field(constraints={"minimum": 0}), r"'x': its values are not known"),
        (field(constraints={"minimum": 0, "maximum": 1.5}), r"'x': The maximum .* got 1.5"),
        (field(constraints={"minimum": 0, "maximum": "9.5"}), r"'x': The maximum .* got '9.5'"),
        (field(type="number", constraints={"minimum": 0, "maximum": 1}), r"'x': .* got 'number'"),
        (field(constraints={"minimum": 0, "maximum": 10**6}), r"'x' .* got 1,000,001"),
        (field(type="boolean", groups={"true": "a"}), r"groups of attribute 'x' .* list of paths"),
        (field(type="boolean", groups=["a", "b"]), r"'x' must be lists of names, .* got 'a'"),
        (field(type="boolean", groups=[["a"]]), r"'x' must be one path for each of its 2 .* got 1"),
        (field(bins=3), r"'x': \"bins\" must be a list of edges, got 3"),
        (field(bins=[0]), r"'x': Bins need at least two edges, got 1"),
        (field(bins=[0, 2, 1]), r"'x': Bin edges must increase, got 2 before 1"),
        (field(bins=[0, True]), r"'x': A bin edge must be a number, got True"),
        (field(bins=[0, 10**400]), r"'x': A bin edge"),
        (field(constraints={"enum": ["\ud800"]}), r"'x'"),
    ],
)
def test_unusable_json(text, message):
    with pytest.raises(DomainError, match=message):
        Domain.parse(text, "s.json")


def test_a_schema_may_be_empty_where_that_is_said():
    assert attributes_from_schema({"fields": []}, may_be_empty=True) == []
    with pytest.raises(DomainError, match='"fields"'):
        attributes_from_schema({}, may_be_empty=True)
    with pytest.raises(DomainError, match='"fields"'):
        attributes_from_schema({"fields": []})


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", ["sizes.json", "schema.json", "codebook.csv"])
def test_more_attributes_than_any_codebook_has_are_refused_before_one_is_made(name, monkeypatch):
    names = [f"a{number}" for number in range(MAX_ATTRIBUTES + 1)]
    texts = {
        "sizes.json": json.dumps(dict.fromkeys(names, 2)),
        "schema.json": json.dumps({"fields": [{"name": name} for name in names]}),
        "codebook.csv": "attribute,value\n" + "".join(f"{name},1\n" for name in names),
    }
    for module in (codebook, codebook_rows):
        monkeypatch.setattr(module, "Attribute", None)
    with pytest.raises(DomainError, match="can have at most 100,000 attributes"):
        Domain.parse(texts[name], name)


def test_missing_values_of_numbers_have_cells_behind_the_numbers():
    missing = [{"value": "-9", "label": "refused"}, {"value": "-8", "label": "refused"}, "-7", ""]
    whole = {"type": "integer", "constraints": {"minimum": 0, "maximum": 3}}
    fields = [
        {"name": "age", **whole, "missingValues": missing},
        {"name": "mass", "type": "number", "bins": [0, 1, 2], "missingValues": ["1.5"]},
        {"name": "none", **whole, "missingValues": []},
        {"name": "all", **whole},
        {"name": "grouped", **whole, "missingValues": ["9"], "groups": [["a"], ["a"], [], ["b"]]},
    ]
    domain = Domain.from_schema({"fields": fields, "missingValues": ["", "2", "99"]})
    assert domain["age"].labels() == ["0", "1", "2", "3", "refused", "not stated"]
    assert domain["mass"].labels() == ["0 to under 1", "1 to 2", "not stated"]
    assert domain["none"].labels() == ["0", "1", "2", "3"]
    # Of the whole table's, that which it would read as a number.
    assert domain["all"].values == Integers(0, 3, missing=(("2", "not stated"),))
    assert domain["grouped"].groups == (("a",), ("a",), (), ("b",), ("Missing",))
    assert Domain.from_schema(domain.to_schema()) == domain
    with pytest.raises(DomainError, match="cell for missing numbers"):
        domain.text("codebook.csv")


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ((("-9", "3"),), "tell it from the numbers"),
        ((("-9", "0 to 9"),), "tell it from the numbers"),
        ((("-9", ""),), "tell it from the numbers"),
        ((("-9", "a"), ("-9.0", "b")), "listed twice"),
        ("-9", "must be a list"),
        (("-9",), "pair of texts"),
    ],
)
def test_missing_values_that_cannot_be_are_refused(missing, reason):
    for kind in (lambda: Integers(0, 9, 1, missing), lambda: Bins((0, 1), missing)):
        with pytest.raises(DomainError, match=reason):
            kind()


def test_codebooks_in_another_encoding_are_read_as_it_is_named(tmp_path):
    (tmp_path / "c.csv").write_bytes("attribute;value\nort;Köln\nort;Bonn\n".encode("windows-1252"))
    with pytest.raises(DomainError, match="is not UTF-8 text"):
        Domain.load(tmp_path / "c.csv")
    domain = Domain.load(tmp_path / "c.csv", encoding="windows-1252")
    assert domain["ort"].labels() == ["Köln", "Bonn"]
    with pytest.raises(DomainError, match="no encoding 'klingon'"):
        Domain.load(tmp_path / "c.csv", encoding="klingon")
    # A mark in the file says what it is in, whatever is named.
    (tmp_path / "c.csv").write_text("attribute;value\nort;Köln\nort;Bonn\n", "utf-16")
    assert Domain.load(tmp_path / "c.csv", encoding="windows-1252") == domain
