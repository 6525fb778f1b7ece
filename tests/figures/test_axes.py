"""What all figures share: styles that are told apart without colour, and read on both themes."""

import itertools
import re
import tomllib
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.figures.axes import GREY, STYLES, spread_apart, style

CONFIG = Path(__file__).parents[2] / ".streamlit" / "config.toml"


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_no_two_styles_share_a_mark_a_dash_or_a_colour():
    for one, other in combinations(STYLES, 2):
        assert one.marker != other.marker
        assert one.dash != other.dash
        assert one.colour != other.colour


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("background", ["backgroundColor", "secondaryBackgroundColor"])
def test_every_colour_reads_on_every_background(theme, background):
    ground = tomllib.loads(CONFIG.read_text("utf-8"))["theme"][theme][background]
    for colour in [GREY, *(each.colour for each in STYLES)]:
        assert contrast(colour, ground) >= 3


def test_styles_start_over_after_the_last():
    assert style(len(STYLES)) == style(0)


def test_a_fill_is_the_colour_made_translucent():
    red, green, blue, opacity = re.findall(r"[\d.]+", style(1).fill(0.5))
    assert [int(red), int(green), int(blue)] == [0xC2, 0x57, 0x1A]
    assert float(opacity) == 0.5


@given(st.lists(st.floats(-5, 5), max_size=8), st.floats(0.01, 2))
def test_labels_stand_apart_and_in_order(places, gap):
    result = spread_apart(places, gap)
    assert len(result) == len(places)
    ranked = sorted(range(len(places)), key=lambda i: -places[i])
    for upper, lower in itertools.pairwise(ranked):
        assert result[upper] - result[lower] >= gap * (1 - 1e-9)
    # As near as can be: on the whole they are not moved up or down.
    assert sum(result) == pytest.approx(sum(places), abs=1e-6)


def test_labels_with_room_stay_where_they_belong():
    assert spread_apart([1, 5, 3], 1) == [1, 5, 3]
    assert spread_apart([2, 2], 1) == pytest.approx([2.5, 1.5])
    assert spread_apart([0, 10, 0.5], 1) == pytest.approx([-0.25, 10, 0.75])
