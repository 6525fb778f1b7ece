"""Custom bases of a plan as files, so that programs can load them again exactly."""

import json
import re

from rpexplore.domain.attribute import Attribute
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases import Basis, CustomBasis, to_json
from rpexplore.workload.custom_basis_file import csv_from_custom_basis, read_custom_basis
from rpexplore.workload.workload import Workload

# What else stands in the folder, as lower-case stems.
_TAKEN = {"plan", "report", "tables", "codebook", "scenario", "commands", "made", "records"}
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,59}(?<! )")

CustomBasisFiles = dict[tuple[int, Basis], tuple[str, str]]


def custom_basis_files(workload: Workload) -> CustomBasisFiles:
    """(index of the attribute, its custom basis) -> (name of a file, its text), `{}` without any.

    As CSV under their name where that says all, otherwise as JSON.
    """
    files: CustomBasisFiles = {}
    taken = set(_TAKEN)
    for index, basis in workload.attribute_bases:
        if isinstance(basis, CustomBasis):
            attribute = workload.domain.attributes[index]
            name, text = _file(basis, attribute, taken)
            taken.add(name.rpartition(".")[0].lower())
            files[index, basis] = name, text
    return files


def _file(basis: CustomBasis, attribute: Attribute, taken: set[str]) -> tuple[str, str]:
    if _PLAIN.fullmatch(basis.name) and basis.name.lower() not in taken:
        name, text = f"{basis.name}.csv", csv_from_custom_basis(basis, attribute)
        try:
            if read_custom_basis(text.encode(), name, attribute) == basis:
                return name, text
        except WorkloadError:  # labels that CSV cannot tell from something else
            pass
    number = 1
    while f"custom-basis-{number}" in taken:
        number += 1
    return f"custom-basis-{number}.json", json.dumps(to_json(basis), ensure_ascii=False) + "\n"
