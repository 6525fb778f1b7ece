"""A codebook and records of fixed width, as IPUMS writes an extract; made up."""

import numpy as np
import pandas as pd

# Name, places, decimals, type, labels by value as the codebook writes them.
VARIABLES = (
    ("YEAR", 4, 0, "numeric", {"2024": "2024", "2025": "2025"}),
    ("SERIAL", 8, 0, "numeric", {}),
    ("PERWT", 10, 2, "numeric", {}),
    ("STATEFIP", 2, 0, "numeric", {"01": "Alabama", "02": "Alaska", "56": "Wyoming"}),
    ("SEX", 1, 0, "numeric", {"1": "Male", "2": "Female", "9": "Missing/blank"}),
    ("AGE", 3, 0, "numeric", {f"{age:03}": f"{age}" for age in range(91)}),
    ("OCC", 4, 0, "character", {"0010": "Executives", "10": "Old code", "A9": "Army"}),
    ("INCWAGE", 7, 0, "numeric", {}),
)
WIDTH = sum(places for _, places, *_ in VARIABLES)


def ddi(structure: str = "rectangular", *, edit: tuple[str, str] = ("", "")) -> str:
    """The codebook; edit: a text in it, and what stands in its place."""
    parts, start = [], 1
    for name, places, decimals, kind, labels in VARIABLES:
        end = start + places - 1
        listed = "".join(
            f"<catgry><catValu>{value}</catValu><labl>{label}</labl></catgry>"
            for value, label in labels.items()
        )
        weight = ' wgt="wgt"' if name == "PERWT" else ""
        parts.append(
            f'<var ID="{name}" name="{name}" files="F1" dcml="{decimals}" rectype="P"{weight} '
            f'intrvl="{"discrete" if labels else "contin"}">'
            f'<location StartPos="{start}" EndPos="{end}" width="{places}" RecSegNo="1"/>'
            f'<labl>{name.title()}</labl>{listed}<varFormat type="{kind}" schema="other"/></var>'
        )
        start = end + 1
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<codeBook xmlns="ddi:codebook:2_5" version="2.5"><fileDscr ID="F1"><fileTxt>'
        f'<fileName>usa.dat</fileName><fileStrc type="{structure}"/></fileTxt></fileDscr>'
        f"<dataDscr>{''.join(parts)}</dataDscr></codeBook>"
    )
    assert edit[0] in text
    return text.replace(*edit) if edit[0] else text


def records(n_records: int, seed: int = 1) -> str:
    """Lines of people, with blanks, leading zeros, a missing code and weights of two decimals."""
    rng = np.random.default_rng(seed)
    columns = []
    for name, places, _, _, labels in VARIABLES:
        if name == "SERIAL":
            texts = [str(number) for number in range(n_records)]
        elif labels:
            texts = rng.choice(list(labels), n_records).tolist()
        else:
            texts = [str(number) for number in rng.integers(0, 10**5, n_records)]
        columns.append([text.zfill(places) if not labels else text.ljust(places) for text in texts])
    lines = ["".join(row) for row in zip(*columns, strict=True)]
    blank = rng.random(n_records) < 0.1
    wage = WIDTH - VARIABLES[-1][1]
    return "".join(
        f"{line[:wage]}{' ' * (WIDTH - wage)}\n" if is_blank else f"{line}\n"
        for line, is_blank in zip(lines, blank, strict=True)
    )


def by_pandas(path, **options) -> pd.DataFrame:
    """The records as texts, cut by pandas."""
    return pd.read_fwf(
        path,
        widths=[places for _, places, *_ in VARIABLES],
        names=[name for name, *_ in VARIABLES],
        dtype=str,
        keep_default_na=False,
        **options,
    )
