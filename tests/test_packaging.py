"""What is shipped: locked requirements, private-by-default settings, a wheel that holds the app."""

import re
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.support.wheel import built_wheel

ROOT = Path(__file__).parents[1]
LOCKS = ["requirements.lock", "requirements-dev.lock"]
ALL_LOCKS = [*LOCKS, "requirements-spark.lock", "requirements-synthetic.lock"]
# The parts a checkout consists of; whatever else lies there is not the project's.
PARTS = [".ci", ".streamlit", "pages", "rpexplore", "sample_data", "tests"]


def pins(lock: str) -> dict[str, str]:
    """{"numpy": "2.4.6", …} of a lock file."""
    text = (ROOT / lock).read_text("utf-8")
    return dict(
        re.findall(r"^([a-z0-9][a-z0-9._-]*)(?:\[[a-z,]+\])?==([^\s;]+)", text, re.MULTILINE)
    )


def project() -> dict:
    """The [project] table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.parametrize("lock", ALL_LOCKS)
def test_lock_names_no_host(lock):
    text = (ROOT / lock).read_text("utf-8")
    assert not re.findall(r".*(?:://|--index|--extra-index|--find-links|--trusted|@ ).*", text)


@pytest.mark.parametrize("lock", ALL_LOCKS)
def test_every_requirement_is_one_version_with_hashes(lock):
    text = (ROOT / lock).read_text("utf-8")
    # One requirement a line, once continuation lines are joined and comments dropped.
    lines = re.sub(r"\s*#.*", "", text.replace("\\\n", " ")).split("\n")
    requirements = [line for line in lines if line.strip()]
    assert len(requirements) > (30 if lock in LOCKS else 1)
    for line in requirements:
        assert re.fullmatch(
            r"[a-z0-9._\[\],-]+==\S+( ; [^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+ *", line
        )


def test_product_and_development_locks_agree():
    product, development = (pins(lock) for lock in LOCKS)
    assert product.items() <= development.items()


def test_product_lock_holds_every_dependency_and_no_test_tool():
    product = pins("requirements.lock")
    dependencies = project()["dependencies"] + project()["optional-dependencies"]["app"]
    needed = {re.match(r"[a-z0-9]+", name).group() for name in dependencies}
    assert needed | {"hatchling", "editables"} <= product.keys()
    assert not {"pytest", "playwright", "ruff", "opendp"} & product.keys()


def test_settings_keep_the_app_private():
    settings = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["client"]["showErrorDetails"] == "none"
    assert settings["client"]["showErrorLinks"] is False


def test_settings_are_ones_streamlit_knows():
    """Streamlit ignores a misspelt option, so a typing error could switch telemetry on again."""
    from streamlit import config

    settings = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))

    def options(table: dict, prefix: str = ""):
        for key, value in table.items():
            if isinstance(value, dict):
                yield from options(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}"

    unknown = set(options(settings)) - config.get_config_options().keys()
    assert not unknown


def test_settings_name_no_address_but_this_machine():
    text = (ROOT / ".streamlit/config.toml").read_text("utf-8")
    assert "://" not in text


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    with zipfile.ZipFile(built_wheel(tmp_path_factory.mktemp("wheel"))) as archive:
        yield archive


def test_wheel_holds_the_app_and_its_sample_data(wheel):
    shipped = set(wheel.namelist())
    wanted = {
        "app.py": "app.py",
        ".streamlit/config.toml": ".streamlit/config.toml",
        ".streamlit/style.css": ".streamlit/style.css",
        **{
            str(path.relative_to(ROOT)): str(path.relative_to(ROOT))
            for folder, kinds in (
                ("pages", {".py"}),
                ("sample_data", {".csv", ".gz", ".json", ".md"}),
            )
            for path in (ROOT / folder).iterdir()
            if path.suffix in kinds
        },
    }
    assert len(wanted) > 5
    for source, target in wanted.items():
        name = f"rpexplore/webapp/{target}"
        assert name in shipped
        assert wheel.read(name) == (ROOT / source).read_bytes()


def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    of_package = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "rpexplore").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    shipped = {
        name
        for name in wheel.namelist()
        if not name.startswith("rpexplore/webapp/") and ".dist-info/" not in name
    }
    assert shipped == of_package
    assert not [name for name in wheel.namelist() if name.endswith(".pyc")]


def test_wheel_tells_version_license_and_command(wheel):
    def read(name: str) -> str:
        (path,) = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
        return wheel.read(path).decode()

    metadata = Parser().parsestr(read("METADATA"))
    assert metadata["Version"] == project()["version"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "rpexplore = rpexplore.cli.main:main" in read("entry_points.txt")


def test_version_is_said_once():
    import rpexplore

    version = project()["version"]
    assert rpexplore.__version__ == version
    said = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "rpexplore").rglob("*.py")
        if f'"{version}"' in path.read_text("utf-8")
    ]
    assert not said


def test_no_file_names_a_path_of_one_machine():
    # Written in two halves, so that this file does not trip over itself.
    homes = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/"]
    pattern = re.compile(r"(?<![\w.:/-])(" + "|".join(homes) + ")")
    paths = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for part in PARTS:
        paths += [path for path in (ROOT / part).rglob("*") if "__pycache__" not in path.parts]
    hits = []
    for path in paths:
        if path.is_file():
            # Binary files decode to something that holds no such path.
            text = path.read_text("utf-8", errors="replace")
            hits += [f"{path.relative_to(ROOT)}: {hit}" for hit in pattern.findall(text)]
    assert not hits, "\n".join(hits)
