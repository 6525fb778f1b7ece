"""What a login file may say, and that nothing of it is said again."""

import pytest

from rpexplore.common.server import PublicAddress
from rpexplore.common.server_files import DEFAULT_PROVIDER, Login
from rpexplore.errors import RpexploreError

ADDRESS = PublicAddress.parse("https://plan.agency.example/plan")
SECRET = "5ec12e7" * 6
PROVIDER = f"""client_id = "planning"
client_secret = "{SECRET}"
server_metadata_url = "https://login.agency.example/.well-known/openid-configuration"
"""
COOKIE = f'cookie_secret = "{SECRET}"\n'


@pytest.fixture
def read(tmp_path):
    def read(text: str, mode: int = 0o600) -> Login:
        path = tmp_path / "login.toml"
        path.write_text(text, "utf-8")
        path.chmod(mode)
        return Login.read(path, ADDRESS)

    return read


def test_the_redirect_follows_from_the_address(read):
    login = read(f"[auth]\n{COOKIE}{PROVIDER}")
    assert [*login.providers] == [DEFAULT_PROVIDER]
    assert login.redirect_uri == "https://plan.agency.example/plan/oauth2callback"
    same = 'redirect_uri = "https://plan.agency.example/plan/oauth2callback"\n'
    assert read(f"[auth]\n{COOKIE}{same}{PROVIDER}") == login
    assert SECRET not in repr(login)


def test_several_providers(read):
    login = read(f"[auth]\n{COOKIE}[auth.staff]\n{PROVIDER}[auth.guests]\n{PROVIDER}")
    assert [*login.providers] == ["staff", "guests"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "one table"),
        ("[auth\n" + SECRET, "one table"),
        (f"auth = '{SECRET}'", "one table"),
        (f"[auth]\n{COOKIE}{PROVIDER}[connections]\nx = '{SECRET}'", "one table"),
        (f"[auth]\n{PROVIDER}", "cookie_secret"),
        (f"[auth]\ncookie_secret = 'hunter2'\n{PROVIDER}", "openssl rand -hex 32"),
        (f"[auth]\n{COOKIE}", "must name a provider"),
        (f"[auth]\n{COOKIE}expose_tokens = 'id'\n{PROVIDER}", "not expose_tokens"),
        (f"[auth]\n{COOKIE}redirect_uri = 'https://x.example/oauth2callback'\n{PROVIDER}", "leave"),
        (f"[auth]\n{COOKIE}[auth.staff]\nclient_id = 'x'", "add client_secret"),
        (f"[auth]\n{COOKIE}[auth.our_staff]\n{PROVIDER}", "rename it"),
        (f"[auth]\n{COOKIE}[auth.staff]\n{PROVIDER}more = '{SECRET}'", "leave out"),
        (f"[auth]\n{COOKIE}{PROVIDER}client_kwargs = 'x'", "a table"),
        (f"[auth]\n{COOKIE}{PROVIDER}".replace("https://", "http://"), "begins with https://"),
    ],
)
def test_refused_without_a_word_of_it(read, text, said):
    with pytest.raises(RpexploreError, match=said) as refused:
        read(text)
    assert SECRET not in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_others_may_not_read_it(read, tmp_path):
    with pytest.raises(RpexploreError, match="chmod 600"):
        read(f"[auth]\n{COOKIE}{PROVIDER}", 0o640)
    with pytest.raises(RpexploreError, match="There is no login file"):
        Login.read(tmp_path / "none.toml", ADDRESS)
