"""YAML texts, read again by PyYAML."""

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rpexplore.common.text import yaml_text

KEYS = st.from_regex(r"\A[a-z]\w*\Z").filter(lambda key: key not in ("y", "n", "yes", "no", "on"))
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.one_of(TEXTS, NUMBERS, st.booleans()),
    lambda inner: st.one_of(
        st.dictionaries(KEYS, inner, min_size=1), st.lists(TEXTS, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=25)
@given(st.dictionaries(KEYS, VALUES, min_size=1))
@example({"a": "two\n\n  lines " + "x" * 99, "b": "no: yes #", "c": " x" * 50, "d": "\n" * 3})
@example({"delta": 1e-06, "nul": "\0\x7f\x85\u2028\N{NO-BREAK SPACE}😀", "e": 1e300})
def test_what_is_written_is_what_is_read(content):
    assert yaml.safe_load(yaml_text(content)) == content


def test_long_texts_are_blocks_that_people_can_edit():
    text = "Counts of persons, by age and sex; noisy, with the standard error of every count."
    assert yaml_text({"basic": {"name": "Atlas", "description": text}}) == (
        f'basic:\n  name: "Atlas"\n  description: |-\n    {text}\n'
    )
