"""Domain: names, positions, files."""

import numpy as np
import pytest

from rpexplore import AreaTree, Attribute, Categories, Domain, Integers
from rpexplore.domain.levels import Level
from rpexplore.errors import DomainError


@pytest.fixture
def domain():
    return Domain.from_sizes({"age": 100, "sex": 2, "region": 16})


def test_from_sizes(domain):
    assert domain.names == ("age", "sex", "region")
    assert domain.sizes.tolist() == [100, 2, 16]
    assert domain["sex"].labels() == ["0", "1"]
    assert len(domain) == 3
    assert Domain.from_sizes({"x": np.int64(3), "y": 10**6}).sizes.tolist() == [3, 10**6]


def test_sizes_are_read_only(domain):
    with pytest.raises(ValueError, match="read-only"):
        domain.sizes[0] = 1


def test_equality_and_hash_follow_the_content(domain):
    same = Domain.from_sizes({"age": 100, "sex": 2, "region": 16})
    assert domain == same
    assert hash(domain) == hash(same)
    assert domain != Domain.from_sizes({"sex": 2, "age": 100, "region": 16})


def test_attribute_indices(domain):
    assert domain.position("sex") == 1
    assert domain.positions(["region", "age"]) == (0, 2)
    assert domain.positions("sex") == (1,), "a bare text is one name, not its letters"
    assert domain.positions(()) == ()


@pytest.mark.parametrize("size", [0, -1, 2.0, "3", True, None, 10**6 + 1])
def test_unusable_size_is_refused_by_name(size):
    with pytest.raises(DomainError, match=r"'x'.* got "):
        Domain.from_sizes({"ok": 2, "x": size})


def test_other_refusals(domain):
    with pytest.raises(DomainError, match="'a' is in the domain twice"):
        Domain((Attribute("a", Integers(0, 1)), Attribute("a", Integers(0, 2))))
    with pytest.raises(DomainError, match=r"no attribute 'income'.* age, sex, region"):
        domain.positions(["age", "income"])
    with pytest.raises(DomainError, match="'sex' is named twice"):
        domain.positions(["sex", "age", "sex"])
    with pytest.raises(DomainError, match="no attribute 3 "):
        domain["age"] and domain[3]


def test_files(domain, tmp_path):
    for ending in ("json", "csv"):
        path = tmp_path / f"codebook.{ending}"
        domain.save(path)
        assert Domain.load(path).names == domain.names
        assert Domain.load(str(path)).sizes.tolist() == domain.sizes.tolist()


def test_byte_order_mark_is_skipped(domain, tmp_path):
    for ending in ("json", "csv"):
        path = tmp_path / f"codebook.{ending}"
        path.write_text("\ufeff" + domain.text(path.name), encoding="utf-8")
        assert Domain.load(path).names == domain.names


def test_unusable_files_are_named(domain, tmp_path):
    with pytest.raises(DomainError, match=r"no\.json.* cannot be read \(No such file"):
        Domain.load(tmp_path / "no.json")
    with pytest.raises(DomainError, match="cannot be read"):
        Domain.load(tmp_path)
    (tmp_path / "latin.csv").write_bytes("attribute,value\nä,ö\n".encode("latin-1"))
    with pytest.raises(DomainError, match=r"latin\.csv.* not UTF-8"):
        Domain.load(tmp_path / "latin.csv")
    with pytest.raises(DomainError, match=r"\.json .*\.csv.*\.ods.* got 'codebook\.dat'"):
        Domain.parse("", "codebook.dat")
    with pytest.raises(DomainError, match=r"got 'codebook\.xlsx'"):
        domain.save(tmp_path / "codebook.xlsx")
    with pytest.raises(DomainError, match=r"codebook\.json.* cannot be written"):
        domain.save(tmp_path / "missing" / "codebook.json")


def test_a_domain_holds_its_attributes():
    domain = Domain.from_sizes({"age": np.int64(3), "sex": 2})
    assert "age" in domain
    assert "income" not in domain
    assert [attribute.name for attribute in domain] == ["age", "sex"]
    with pytest.raises(DomainError, match="made of Attributes, got str"):
        Domain(["age"])


def test_a_domain_may_be_empty_but_is_no_codebook():
    empty = Domain(())
    assert (len(empty), empty.names, empty.sizes.tolist()) == (0, (), [])
    assert Domain.from_sizes({}) == empty
    for ending in ("json", "csv"):
        with pytest.raises(DomainError, match="no attributes yet"):
            empty.text(f"codebook.{ending}")
    with pytest.raises(DomainError, match=r"no attribute 'age' .* none yet"):
        empty.position("age")


@pytest.mark.parametrize(("sizes", "n_cells"), [({}, 1), ({"a": 3, "b": 4}, 12)])
def test_cells_of_all_attributes_together_are_counted_exactly(sizes, n_cells):
    assert Domain.from_sizes(sizes).n_cells == n_cells
    assert Domain.from_sizes({f"a{i}": 10 for i in range(40)}).n_cells == 10**40


@pytest.mark.parametrize("unseen", ["\u200b", "\u200f", "\u200d", "\u00ad", "\ufeff", "\x07"])
def test_names_and_labels_that_look_alike_are_refused(unseen):
    """Readers would take one for the other; what records write may differ so, with other labels."""
    hidden = f"no{unseen}rth"
    with pytest.raises(DomainError, match=r"^The label 'no\\.*' looks like 'north', from which it"):
        Categories(("north", hidden))
    with pytest.raises(DomainError, match=r"^The label .* looks like"):
        Categories(("1", "2"), (hidden, "north"))
    Categories(("north", hidden), ("north", "North (second list)"))
    if unseen != "\x07":
        one, two = (Attribute(name, Integers(0, 1)) for name in (hidden, "north"))
        with pytest.raises(DomainError, match=r"^The attribute 'north' looks like 'no\\"):
            Domain((one, two))


@pytest.mark.parametrize("turning", ["\u202a", "\u202e", "\u2066", "\u2069"])
def test_texts_that_turn_the_direction_of_reading_are_refused(turning):
    """As beside them another number or label would be read backwards."""
    with pytest.raises(DomainError, match=r"^The label .* holds the sign U\+20"):
        Categories(("1", "2"), (f"a{turning}b", "c"))
    for name, label in ((f"a{turning}", ""), ("a", f"{turning}b")):
        with pytest.raises(DomainError, match=r"holds the sign U\+20.*leave the sign out"):
            Attribute(name, Integers(0, 1), label)
    # Hebrew and Persian need these.
    Categories(("1", "2"), ("\u05d0\u200e1", "\u0645\u06cc\u200c\u062e"))


@pytest.mark.parametrize("text", ["no\u200brth", "no\x07rth"])
def test_groups_and_areas_that_look_alike_are_refused_too(text):
    with pytest.raises(DomainError, match=r"looks like 'north'"):
        Level("side", ("north", text, "south"))
    with pytest.raises(DomainError, match=r"looks like 'north'"):
        Attribute("town", Integers(0, 2), groups=(("north",), (text,), ("south",)))
    with pytest.raises(DomainError, match=r"codes of the level 'town'.*looks like 'north'"):
        AreaTree.from_columns({"town": ["north", text]})
    with pytest.raises(DomainError, match=r"names of the level 'town'.*looks like 'north'"):
        AreaTree.from_columns({"town": ["1", "2"]}, {"town": ["north", text]})
    AreaTree.from_columns({"town": ["1", "2"]}, {"town": [text, text]})


def test_names_of_areas_and_groups_keep_the_direction_of_reading():
    for make in (
        lambda text: Level("side", (text, "a")),
        lambda text: Attribute("town", Integers(0, 1), groups=((text,), ("a",))),
        lambda text: AreaTree.from_columns({"town": ["1", "2"]}, {"town": [text, "a"]}),
    ):
        with pytest.raises(DomainError, match=r"holds the sign U\+202E"):
            make("a\u202eb")
