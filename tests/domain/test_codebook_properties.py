"""Every property of every codebook format: honoured, refused by name, or of no matter."""

import json
from typing import Any

import pyreadstat
import pytest

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.domain import codebook_properties as properties
from rpexplore.domain.codebook_formats import variables_of_ddi
from rpexplore.domain.codebook_properties import READ, NoMatter, Refused
from rpexplore.errors import DomainError

# What the two editions of the specification list, and this project's own.
SPECIFIED = {
    "FIELD": "name title type format description example rdfType constraints missingValues "
    "categories categoriesOrdered trueValues falseValues decimalChar groupChar bareNumber "
    "bins groups areas spellings recode step",
    "CONSTRAINTS": "required unique enum minimum maximum exclusiveMinimum exclusiveMaximum "
    "minLength maxLength pattern jsonSchema step",
    "SCHEMA": "fields missingValues primaryKey uniqueKeys foreignKeys fieldsMatch $schema "
    "impossible",
}
WHOLE: dict[str, Any] = {
    "name": "x",
    "type": "integer",
    "constraints": {"minimum": 0, "maximum": 9},
}
LISTED = {"name": "x", "type": "string", "constraints": {"enum": ["a", "b"]}}
YES = {"name": "x", "type": "boolean"}
BINS = {"name": "x", "type": "number", "bins": [0, 10, 20]}
AMOUNTS = {"name": "x", "type": "number", "bounds": [0, 20]}
# Of each property that is read, a field without and what it becomes with it.
DAYS: dict[str, Any] = {
    "name": "x",
    "type": "date",
    "constraints": {"minimum": "2026-01-01", "maximum": "2026-12-31"},
}
HONOURED = {
    "name": (LISTED, "y"),
    "title": (LISTED, "Title"),
    "type": (WHOLE, "number"),
    "constraints": (LISTED, {"enum": ["a"]}),
    "categories": (LISTED, [{"value": "a", "label": "A"}]),
    "missingValues": (LISTED, ["-9"]),
    "trueValues": (YES, ["yes", "y"]),
    "falseValues": (YES, ["no"]),
    "bins": (LISTED, [0, 1]),
    "bounds": ({"name": "x", "type": "number"}, [0, 1]),
    "unit": (AMOUNTS, "EUR"),
    "decimals": (AMOUNTS, 2),
    "weights": (AMOUNTS, True),
    "groups": (LISTED, [["g"], []]),
    "levels": (WHOLE, {"pairs": 2}),
    "areas": (LISTED, {"path": "areas.csv"}),
    "spellings": (LISTED, [["A"], []]),
    "recode": (LISTED, {"c": "b"}),
    "step": (WHOLE, 5),
    "format": (DAYS, "%d/%m/%Y"),
}
LIMITS = {"enum": [1], "minimum": 2, "maximum": 8, "exclusiveMinimum": 2, "exclusiveMaximum": 8}
# Of each that is of no matter or refused, what it may say.
SAID = {
    "decimalChar": ",", "groupChar": ".", "bareNumber": False, "format": "email", "unique": True,
    "required": True, "categoriesOrdered": True, "minLength": 1, "maxLength": 9, "pattern": ".*",
    "jsonSchema": {}, "fieldsMatch": "exact", "primaryKey": ["x"], "uniqueKeys": [["x"]],
    "foreignKeys": [],
}  # fmt: skip


def domain_of(field: dict, **more) -> Domain:
    return Domain.from_schema({"fields": [field], **more})


def outcome(field: dict) -> Domain | str:
    try:
        return domain_of(field)
    except DomainError as error:
        return str(error)


@pytest.mark.parametrize("name", SPECIFIED)
def test_every_property_of_the_specification_has_a_fate(name):
    assert {*SPECIFIED[name].split()} <= getattr(properties, name).keys()


@pytest.mark.parametrize("name", [name for name, fate in properties.FIELD.items() if fate == READ])
def test_a_property_of_a_field_that_is_read_is_honoured(name):
    field, value = HONOURED[name]
    assert outcome({**field, name: value}) != outcome(field)


@pytest.mark.parametrize("name", [n for n, fate in properties.CONSTRAINTS.items() if fate == READ])
def test_a_constraint_that_is_read_is_honoured(name):
    changed = {**WHOLE["constraints"], name: LIMITS.get(name, 3)}
    assert outcome({**WHOLE, "constraints": changed}) != outcome(WHOLE)


@pytest.mark.parametrize("name", {**properties.FIELD, **properties.CONSTRAINTS})
def test_what_is_not_read_is_refused_by_name_or_changes_nothing(name):
    fate = {**properties.FIELD, **properties.CONSTRAINTS}[name]
    said = SAID.get(name, "some text")
    is_constraint = name in properties.CONSTRAINTS
    for field in (WHOLE, LISTED, YES, BINS, DAYS):
        constraints = {**field.get("constraints", {}), **({name: said} if is_constraint else {})}
        changed = {**field, "constraints": constraints, **({} if is_constraint else {name: said})}
        if isinstance(fate, NoMatter):
            assert domain_of(changed) == domain_of(field)
        elif isinstance(fate, Refused):
            with pytest.raises(DomainError, match=rf"'x': its {name} .* cannot be honoured; \w+"):
                domain_of(changed)
            for accepted in fate.unless:
                assert domain_of({**field, name: accepted}) == domain_of(field)


@pytest.mark.parametrize("field", [WHOLE, YES, BINS])
def test_a_format_of_numbers_is_refused(field):
    with pytest.raises(DomainError, match="its format 'currency' cannot be honoured"):
        domain_of({**field, "format": "currency"})
    assert domain_of({**field, "format": "default"}) == domain_of(field)
    assert domain_of({**LISTED, "format": "email"}) == domain_of(LISTED)  # texts are as listed


def test_what_schema_and_resource_say_beside_is_of_no_matter():
    for name, fate in properties.SCHEMA.items():
        if isinstance(fate, NoMatter):
            assert domain_of(LISTED, **{name: SAID.get(name, "some text")}) == domain_of(LISTED)
    resource = {
        name: {"delimiter": ";"} if name == "dialect" else "text"
        for name, fate in properties.RESOURCE.items()
        if isinstance(fate, NoMatter)
    }
    package = {"resources": [{**resource, "name": "t", "schema": {"fields": [LISTED]}}]}
    assert Domain.parse(json.dumps(package), "datapackage.json") == domain_of(LISTED)


# --- exclusive limits, and limits beside other values


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 10}, Integers(1, 9)),
        ({"exclusiveMinimum": 17, "maximum": 30}, Integers(18, 30)),
        ({"minimum": "0", "exclusiveMaximum": "120", "step": 10}, Integers(0, 119, 10)),
        (
            {"minimum": 5, "exclusiveMinimum": 2, "maximum": 9, "exclusiveMaximum": 9},
            Integers(5, 8),
        ),
    ],
)
def test_exclusive_limits_are_no_values(constraints, expected):
    field = {"name": "x", "type": "integer", "constraints": constraints}
    assert domain_of(field)["x"].values == expected


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"minimum": 0, "exclusiveMaximum": 9.5}, "its exclusiveMaximum must be a whole number"),
        ({"minimum": 0, "exclusiveMaximum": None}, "its exclusiveMaximum must be a whole number"),
        ({"enum": [1, 2], "minimum": 2}, "its values go beyond its minimum 2"),
        ({"enum": [1, 2], "exclusiveMaximum": 2}, "its values go beyond its exclusiveMaximum 2"),
        ({"enum": ["a"], "maximum": 2}, "its values go beyond its maximum 2"),
        ({"enum": [1, 2], "step": 2}, "its step is for whole numbers"),
    ],
)
def test_limits_that_do_not_fit_are_refused(more, message):
    with pytest.raises(DomainError, match=message):
        domain_of({"name": "x", "constraints": more})


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        ({"minimum": 0, "maximum": 20}, True),
        ({"minimum": -5, "exclusiveMaximum": 21}, True),
        ({"minimum": 5}, False),
        ({"exclusiveMinimum": 0}, False),
        ({"maximum": 19.5}, False),
        ({"exclusiveMaximum": 20}, False),  # the last bin includes its right edge
        ({"maximum": "high"}, False),
    ],
)
def test_limits_beside_bins_agree_with_them_or_are_refused(limits, fits):
    field = {**BINS, "constraints": limits}
    if fits:
        assert domain_of(field) == domain_of(BINS)
    else:
        with pytest.raises(DomainError, match=f"its bins reach beyond its {next(iter(limits))}"):
            domain_of(field)


def test_limits_that_all_values_keep_change_nothing():
    days = {"name": "x", "type": "date", "constraints": {"enum": ["2026-01-01", "2026-02-01"]}}
    limited = {**days["constraints"], "minimum": "2026-01-01", "maximum": "2026-12-31"}
    assert domain_of({**days, "constraints": limited}) == domain_of(days)
    codes = {"name": "x", "missingValues": ["-9"], "constraints": {"enum": [1, -9], "minimum": 1}}
    assert domain_of(codes)["x"].stored_values() == ["1", "-9"]


# --- how true and false, and numbers, are written


def test_spellings_of_true_and_false_are_those_of_the_field():
    spelled = {**YES, "trueValues": ["yes", "y"], "falseValues": ["no", "n"]}
    yes, no = ("yes", "no"), (("y",), ("n",))
    assert domain_of(spelled)["x"].values == Categories(yes, (), no)
    labels = [{"value": True, "label": "Member"}, {"value": "n", "label": "None"}]
    labelled = domain_of({**spelled, "categories": labels})["x"].values
    assert labelled == Categories(yes, ("Member", "None"), no)
    only = domain_of({**spelled, "constraints": {"enum": [False]}})["x"].values
    assert only == Categories(("no",), (), (("n",),))
    # What is not stated then is as the specification says.
    stated = domain_of({**YES, "trueValues": ["ja"]})["x"].values
    assert stated == Categories(("ja", "false"), (), ((), ("False", "FALSE", "0")))
    # Missing values come behind.
    values = domain_of({**spelled, "missingValues": ["?"]})["x"].values
    assert values == Categories(("yes", "no", "?"), (), (("y",), ("n",), ()))


def test_numbers_are_listed_by_value():
    field = {"name": "x", "type": "number", "constraints": {"enum": [0.5, 1.0, 2.50, 1e-7, "-3.0"]}}
    domain = domain_of(field)
    assert domain["x"].values == Categories(("0.5", "1", "2.5", "0.0000001", "-3.0"), (), (), True)
    assert domain_of(domain.to_schema()["fields"][0]) == domain
    with pytest.raises(DomainError, match=r"'0.5' and '.50' are one number; keep one"):
        domain_of({"name": "x", "type": "number", "constraints": {"enum": [0.5, ".50"]}})


@pytest.mark.parametrize("spellings", [5, ["a"], [["c"]], [["b"], []], [[""], []], [[1], []]])
def test_spellings_that_cannot_be_used(spellings):
    with pytest.raises(DomainError, match=r"'x': .*(spelling|category)"):
        domain_of({**LISTED, "spellings": spellings})


def test_csv_says_nothing_of_spellings():
    for values in (Categories(("a",), (), (("A",),)), Categories(("1",), are_numbers=True)):
        with pytest.raises(DomainError, match=r"'x' says how .* save the domain as \.json"):
            Domain((Attribute("x", values),)).text("c.csv")
    for name, fate in properties.CSV.items():
        text = f"attribute,value,{name}\nx,a,b\n"
        if isinstance(fate, Refused):
            with pytest.raises(DomainError, match=f"its {name} 'column' cannot be honoured"):
                Domain.parse(text, "c.csv")
        elif isinstance(fate, NoMatter):
            assert Domain.parse(text, "c.csv")["x"].values == Categories(("a",))


# --- other formats


DDI = """<codeBook><dataDscr><var name="x" {var}>{labl}{invalrng}
 <catgry {catgry}><catValu>1</catValu><labl>One</labl>{inner}</catgry>
 <catgry><catValu>2</catValu></catgry><catgry><catValu>7</catValu></catgry>
 <varFormat type="numeric" {format}/>{more}</var></dataDscr></codeBook>"""
PARTS = dict.fromkeys(("var", "labl", "invalrng", "catgry", "inner", "format", "more"), "")


def of_ddi(**parts):
    (variable,) = variables_of_ddi(DDI.format(**PARTS | parts).encode(), "a.xml")
    return variable


@pytest.mark.parametrize(
    ("ends", "missing"),
    [
        ('min="7"', {"7"}),
        ('minExclusive="1"', {"2", "7"}),
        ('minExclusive="1" maxExclusive="7"', {"2"}),
        ('min="1" maxExclusive="2"', {"1"}),
        ('maxExclusive="2"', {"1"}),
        ('minExclusive="7" max="9"', set()),
    ],
)
def test_ranges_of_missing_values_of_ddi_end_where_they_say(ends, missing):
    variable = of_ddi(invalrng=f"<invalrng><range {ends}/></invalrng>")
    assert variable.missing.keys() == missing


@pytest.mark.parametrize(
    "path", [path for path, fate in properties.DDI.items() if isinstance(fate, NoMatter)]
)
def test_other_parts_of_ddi_are_of_no_matter(path):
    element, _, attribute = path.partition("@")
    if attribute and element == "labl":
        parts = {"labl": f'<labl {attribute}="1"/>'}
    elif attribute and element == "catgryGrp":
        parts = {"more": f'<catgryGrp ID="G" {attribute}="1"/>'}
    elif attribute:
        parts = {
            {"": "var", "catgry": "catgry", "varFormat": "format"}[element]: f'{attribute}="1"'
        }
    elif element.startswith("catgry/"):
        parts = {"inner": f"<{element.partition('/')[2]}>7</{element.partition('/')[2]}>"}
    else:
        parts = {"more": f"<{element}>7</{element}>"}
    assert of_ddi(**parts) == of_ddi()


def test_all_that_pyreadstat_tells_of_a_file_has_a_fate():
    told = {name for name in dir(pyreadstat.metadata_container()) if name[0] != "_"}
    assert told == properties.STATISTICS.keys()
