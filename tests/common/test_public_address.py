"""The public address of a shared server, and what is none."""

import pytest

from rpexplore.common.server import PublicAddress, is_this_machine
from rpexplore.errors import RpexploreError


@pytest.mark.parametrize(
    ("text", "origin", "base"),
    [
        ("https://plan.agency.example/plan", "https://plan.agency.example", "/plan"),
        ("https://PLAN.agency.example:443/a/b/", "https://plan.agency.example", "/a/b"),
        ("https://plan.agency.example:8443", "https://plan.agency.example:8443", ""),
        ("http://127.0.0.1:8501", "http://127.0.0.1:8501", ""),
        ("http://localhost:80/", "http://localhost", ""),
        ("https://[2001:db8::1]:8443/x", "https://[2001:db8::1]:8443", "/x"),
    ],
)
def test_origin_and_path(text, origin, base):
    address = PublicAddress.parse(text)
    assert (address.origin, address.base_path) == (origin, base)
    assert str(address) == f"{origin}{base}/"
    assert PublicAddress.parse(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plan.agency.example",
        "https://",
        "https:///plan",
        "ftp://plan.agency.example",
        "http://plan.agency.example",  # without TLS, over a network
        "http://127.0.0.1.example.org",
        "https://plan.agency.example/plan?x=1",
        "https://plan.agency.example/plan?",
        "https://plan.agency.example/#x",
        "https://plan.agency.example:99999/",
        "https://plan.agency.example/a/../b",
        "https://plan.agency.example//b",
        'https://plan.agency.example/"b',
        "https://plän.agency.example/",
        "https://[plan/",
    ],
)
def test_refused(text):
    with pytest.raises(RpexploreError, match="--address https://"):
        PublicAddress.parse(text)


def test_a_password_is_not_said_again():
    with pytest.raises(RpexploreError, match="without a user") as refused:
        PublicAddress.parse("https://me:hunter2@plan.agency.example/")
    assert "hunter2" not in str(refused.value)


def test_only_loopback_is_this_machine():
    assert [is_this_machine(host) for host in ("127.0.0.1", "::1", "localhost")] == [True] * 3
    assert not any(is_this_machine(host) for host in ("0.0.0.0", "10.0.0.1", "localhost.x", ""))
