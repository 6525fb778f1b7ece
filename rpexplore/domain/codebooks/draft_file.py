"""Files whose dictionary a codebook is drafted from, by their endings."""

from pathlib import Path

from rpexplore.common.statistics_files import PACKAGES, statistics_format
from rpexplore.domain.codebooks.statistics_file import variables_of_statistics_file
from rpexplore.domain.codebooks.variables import Draft, draft_of


def draft_of_file(path: Path) -> tuple[str, Draft] | None:
    """What kind of file it is, in words, and the codebook in it; None for another kind.

    Raises `DomainError` for one that cannot be read. Of a file of records none is read.
    """
    form = statistics_format(b"", path.name)
    if form is None:
        return None
    variables = variables_of_statistics_file(path, form, f"The codebook {str(path)!r}")
    return f"file of {PACKAGES[form]}", draft_of(variables)
