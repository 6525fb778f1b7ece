"""Which machine a file is of: stable names, or a refusal."""

from pathlib import Path

import pytest

from rpexplore.common import files
from rpexplore.common.files import machine_names
from rpexplore.errors import LedgerError

NUMBER = "0123456789abcdef0123456789abcdef"
MOUNTS = """22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:5 / /mnt/a\\040b rw,relatime shared:1 - nfs4 server:/export rw
24 23 8:2 / /mnt/a\\040b/local rw - ext4 /dev/sdb1 rw
"""


@pytest.fixture(autouse=True)
def system(tmp_path, monkeypatch) -> Path:
    """A machine with a number and a folder that others mount."""
    (tmp_path / "machine-id").write_text(f"{NUMBER}\n")
    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(files, "_IDENTITIES", (tmp_path / "none", tmp_path / "machine-id"))
    monkeypatch.setattr(files, "_MOUNTS", tmp_path / "mounts")
    monkeypatch.delenv("RPEXPLORE_MACHINE", raising=False)
    return tmp_path


def test_a_machine_is_known_by_a_digest_of_its_number(system):
    # printf 'rpexplore ledger 0123456789abcdef0123456789abcdef' | sha256sum
    assert machine_names(Path("/data")) == ("a1dcc0947db40968",)
    (system / "machine-id").write_text("fedcba9876543210fedcba9876543210\n")
    assert machine_names(Path("/data")) != ("a1dcc0947db40968",)


@pytest.mark.parametrize("content", ["", "uninitialized\n"])
def test_a_container_without_a_number_has_to_be_named(content, system, monkeypatch):
    (system / "machine-id").write_text(content)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(LedgerError, match=r"no identity that is the same after a restart.*RPEXPL"):
        machine_names(Path("/data"))
    monkeypatch.setenv("RPEXPLORE_MACHINE", "worker-1")
    assert machine_names(Path("/data")) == ("worker-1",)


def test_elsewhere_the_host_name_has_to_do(system, monkeypatch):
    (system / "machine-id").unlink()
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.node", lambda: "desk 7.local")
    assert machine_names(Path("/data")) == ("desk-7.local",)


@pytest.mark.parametrize(
    ("path", "is_shared"),
    [("/mnt/a b/x.csv", True), ("/mnt/a b/local/x.csv", False), ("/mnt/a", False), ("/x", False)],
)
def test_a_folder_that_others_mount_has_to_be_named(path, is_shared, monkeypatch):
    if not is_shared:
        assert machine_names(Path(path)) == ("a1dcc0947db40968",)
        return
    with pytest.raises(LedgerError, match="other machines can have as well"):
        machine_names(Path(path))
    monkeypatch.setenv("RPEXPLORE_MACHINE", "team")
    assert machine_names(Path(path)) == ("team", "a1dcc0947db40968")


@pytest.mark.parametrize("name", ["a b", "a/b", "x" * 101, "a:b"])
def test_a_name_of_other_signs_is_refused(name, monkeypatch):
    monkeypatch.setenv("RPEXPLORE_MACHINE", name)
    with pytest.raises(LedgerError, match="must be a name of letters"):
        machine_names(Path("/data"))
