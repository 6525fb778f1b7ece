"""Write all sample data: `python sample_data/generate.py`.

Nobody in them exists, so fixed seeds are right: the files must come out the same every time.
"""

from pathlib import Path

import country_census
import hospital_stays
import household
import labour_force
import municipal_register
import redistricting


def write(folder: Path) -> None:
    """Write records, codebooks and expected counts of every example into the folder."""
    for example in (
        household, redistricting, labour_force, hospital_stays, municipal_register, country_census
    ):  # fmt: skip
        example.write(folder)


if __name__ == "__main__":
    write(Path(__file__).resolve().parent)
