"""Labels of one axis, short enough to stand there: cut where they agree, not where they differ."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise

LONGEST = 30  # characters of a label in a figure

_BETWEEN = " ,;:–-"  # what a label does not begin with
_COMMON, _MANY = 8, 3  # a start this long, in characters, of this many labels says nothing
_HEAD = 6  # characters of a start that are worth keeping


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, cut where it is too long for a label."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shortened_labels(labels: Sequence[str], longest: int = LONGEST) -> list[str]:
    """The labels, those that are too long cut so that different ones still look different.

    Left out is a start that a label has in common with others, or its middle; the end is cut where
    that is not enough. Where all this fails, labels stay as long as they are.

    Example:
        >>> shortened_labels(["Employed, full time", "Employed, part time", "Retired"], 12)
        ['…full time', '…part time', 'Retired']
    """
    if all(len(label) <= longest for label in labels):
        return list(labels)
    # All beginnings of each label, word by word.
    starts = {
        label: list(accumulate(re.findall(r"\w+|\W+", label))) for label in dict.fromkeys(labels)
    }
    counts = Counter(start for of_label in starts.values() for start in of_label)
    short = {
        label: _cut(label, _in_common(label, of_label, counts, longest), longest)
        for label, of_label in starts.items()
    }
    alike = Counter(short.values())
    return [short[label] if alike[short[label]] == 1 else label for label in labels]


def _in_common(label: str, starts: Sequence[str], counts: Counter[str], longest: int) -> int:
    """How many characters at the start to leave out; 0: none.

    As few as needed, behind which the label differs from others that begin alike.
    """
    lengths = [
        len(start)
        for start, longer in pairwise(starts)
        if counts[start] > counts[longer]
        and (len(start) >= longest / 2 or (len(start) >= _COMMON and counts[start] >= _MANY))
    ]
    fitting = [length for length in lengths if len(label) - length < longest]
    return next(iter(fitting), max(lengths, default=0))


def _cut(label: str, start: int, longest: int) -> str:
    """The label if it is short, else without what it has in common, and its end if need be."""
    if len(label) <= longest or start == 0:
        return shortened(label, longest)
    own = label[start:].lstrip(_BETWEEN) or label[start:]
    # Of the start, the whole words that there is room for.
    head = label[: max(longest - len(own), 0)].rpartition(" ")[0].rstrip(_BETWEEN)
    if len(head) < _HEAD:
        head = ""
    return f"{head}…{shortened(own, longest - 1 - len(head))}"
