"""Groups from hierarchies of τ-ARGUS and sdcTable."""

import pytest

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.data.files.columns import recognise, recognise_path
from rpexplore.domain.hierarchy_file import HierarchyFile, with_hierarchy
from rpexplore.errors import DomainError

# As the manual of τ-ARGUS has it: levels of different depth, blanks behind codes of equal width.
REGIONS = "Nr  \r\n@Gr \r\n@Fr \r\nWs\r\n@Nh\r\n@@H1\r\n@@H2\r\n\r\n@Zh\r\nZd\r\n"
PATHS = {
    "Gr": ("Nr",),
    "Fr": ("Nr",),
    "H1": ("Ws", "Nh"),
    "H2": ("Ws", "Nh"),
    "Zh": ("Ws",),
    "Zd": (),
}


def test_codes_without_others_below_them_are_values(tmp_path):
    found = recognise(REGIONS.encode(), "regions.HRC")
    assert isinstance(found, HierarchyFile)
    assert found.paths == PATHS
    path = tmp_path / "regions.hrc"
    path.write_bytes(REGIONS.encode("utf-8-sig"))
    assert recognise_path(path) == HierarchyFile("regions.hrc", PATHS)
    # A total above all, as sdcHierarchies writes it, is no group.
    below = "".join(f"@{row}\n" for row in REGIONS.split() if row)
    assert HierarchyFile.parse(f"Total\n{below}", "t.hrc").paths == PATHS


def test_an_attribute_is_grouped_and_others_keep_theirs():
    file = HierarchyFile.parse(REGIONS, "regions.hrc")
    values = ("Zd", "Gr", "Fr", "H1", "H2", "Zh", "99")
    groups = ((), (), (), (), (), (), ("Missing",))
    region = Attribute("region", Categories(values), "Region", groups)
    wider = Attribute("wider", Categories((*values, "more")))
    domain = Domain((wider, region, Attribute("age", Integers(0, 9))))
    assert file.fitting(domain) == ["region", "wider"]
    grouped = with_hierarchy(domain, "region", file)
    assert grouped["region"].groups == tuple(PATHS.get(value, ("Missing",)) for value in values)
    assert grouped["wider"] == wider
    with pytest.raises(DomainError, match=r"no values of 'age' \('Fr', 'Gr', "):
        with_hierarchy(domain, "age", file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A\n@@A1\n", r"a\.hrc, line 2, is on level 3, where 2 is the deepest"),
        ("@A\n", r"line 1, is on level 2, where 1 is the deepest"),
        ("A\n@A1\nB\n@A1\n", r"line 4, has the code A1 again"),
        ("A\n@\n", r"line 2, has no code"),
        ("A\nB\n", r"a\.hrc has codes of one level only"),
        ("", r"a\.hrc has codes of one level only"),
        ("A\n@x > y\n@@A1\nB\n", "must not hold ' > '"),
    ],
)
def test_what_is_no_hierarchy_is_one_error(text, message):
    domain = Domain((Attribute("a", Categories(("A1", "B"))),))
    with pytest.raises(DomainError, match=message):
        with_hierarchy(domain, "a", HierarchyFile.parse(text, "a.hrc"))
