"""The optional extras of this package, as far as they are installed."""

from importlib.util import find_spec

from rpexplore.errors import MissingExtraError


def require(package: str, extra: str, purpose: str) -> None:
    """Raise `MissingExtraError` unless a package can be imported.

    Args:
        package: The name it is imported by.
        extra: The extra that installs it: a key of `[project.optional-dependencies]`.
        purpose: What it is needed for, after "for": "charts and reports".
    """
    if find_spec(package) is None:
        raise MissingExtraError(
            f"The package {package!r} is needed for {purpose}, and is not installed; install it "
            f'with: pip install "rpexplore[{extra}]"'
        )
