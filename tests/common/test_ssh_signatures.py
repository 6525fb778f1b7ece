"""SSH signatures: what ssh-keygen is asked, and what becomes of its answers."""

from pathlib import Path

import pytest

from rpexplore.common import ssh_signatures
from rpexplore.common.ssh_signatures import canonical_signature, key_facts, sign, signing_key
from rpexplore.errors import ApprovalError
from tests.support.ssh_keys import new_key, requires_ssh_keygen

pytestmark = requires_ssh_keygen


def program(folder: Path, text: str, monkeypatch) -> None:
    """Have this shell script run in the place of ssh-keygen."""
    path = folder / "ssh-keygen"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    monkeypatch.setattr(ssh_signatures, "_FOLDERS", "")
    monkeypatch.setenv("PATH", str(folder))


def test_a_signature_is_of_one_text_in_one_namespace(tmp_path):
    key = new_key(tmp_path, "alice@x")
    signature = sign("text\n", "one", key)
    fingerprint, comment = key_facts(key)
    assert comment == "alice@x"
    assert signing_key("text\n", signature, "one") == fingerprint
    assert signing_key("text", signature, "one") is None
    assert signing_key("text\n", signature, "two") is None


def test_a_public_key_signs_by_its_private_half(tmp_path):
    key = new_key(tmp_path, "alice@x")
    assert signing_key("t", sign("t", "n", Path(f"{key}.pub")), "n") == key_facts(key)[0]


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    key, private = new_key(tmp_path, "alice@x"), tmp_path / "tmp"
    private.mkdir()
    monkeypatch.setattr(ssh_signatures.tempfile, "tempdir", str(private))
    assert signing_key("t", sign("t", "n", key), "n")
    assert list(private.iterdir()) == []


def test_a_name_that_begins_like_an_option_is_the_name_of_a_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new_key(tmp_path, "alice@x").rename("-lnothing")
    assert key_facts(Path("-lnothing"))[0].startswith("SHA256:")
    assert sign("t", "n", Path("-lnothing")).startswith("-----BEGIN SSH SIGNATURE-----\n")


def test_a_key_with_a_passphrase_that_nobody_gives_is_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("SSH_ASKPASS", "/bin/false")
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    key = new_key(tmp_path, "alice@x", "-N", "secret")
    with pytest.raises(ApprovalError, match=r"did not sign \(.*passphrase.*; check the key"):
        sign("t", "n", key)


@pytest.mark.parametrize("content", [None, b"", b"no key", b"x" * 70_000])
def test_what_is_no_key_is_refused(content, tmp_path):
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    with pytest.raises(ApprovalError, match=r"is no SSH key that can be read; name a private key"):
        key_facts(tmp_path / "key")


def test_a_missing_ssh_keygen_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(ssh_signatures, "_FOLDERS", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ApprovalError, match=r"not installed here; install OpenSSH \(8\.2 or newer"):
        signing_key("t", "s", "n")


@pytest.mark.parametrize(
    "script",
    [
        'echo "unknown option -- Y" >&2; exit 1',
        "echo 'Unsupported operation for -Y: \"check-novalidate\"' >&2; exit 1",
    ],
)
def test_an_old_ssh_keygen_is_one_sentence(script, tmp_path, monkeypatch):
    program(tmp_path, script, monkeypatch)
    with pytest.raises(ApprovalError, match=r"is too old .*; install OpenSSH 8\.2 or newer"):
        signing_key("t", "s", "n")


def test_what_ssh_keygen_prints_is_believed_only_where_it_succeeds(tmp_path, monkeypatch):
    good = f"echo 'Good \"n\" signature with ED25519 key SHA256:{'A' * 43}'"
    program(tmp_path, f"{good}; exit 1", monkeypatch)
    assert signing_key("t", "s", "n") is None
    program(tmp_path, f"{good}; exit 0", monkeypatch)
    assert signing_key("t", "s", "n") == f"SHA256:{'A' * 43}"


def test_a_signature_has_one_form(tmp_path):
    signature = sign("t", "n", new_key(tmp_path, "alice@x"))
    assert canonical_signature(signature) == signature
    head, *rows, end, _ = signature.split("\n")
    other = "\n".join([head, "".join(rows), end, ""])
    assert other != signature
    assert canonical_signature(other) == signature
    for wrong in (signature[1:], signature.replace(rows[0], "?"), "", signature + "x"):
        with pytest.raises(ValueError, match="no armoured SSH signature"):
            canonical_signature(wrong)
