"""Debian's nginx on this machine, with the configuration that docs/server-setup.md gives."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.planning_server import answered

ROOT = Path(__file__).parents[2]
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
NGINX, OPENSSL = shutil.which("nginx", path=PATH), shutil.which("openssl")
needs_nginx = pytest.mark.skipif(
    (NGINX is None or OPENSSL is None) and os.environ.get("RPEXPLORE_REQUIRE_NGINX") != "1",
    reason="no nginx found; on Debian: apt-get install nginx-light openssl",
)


@contextmanager
def reverse_proxy(folder: Path, *, port: int, behind: int) -> Iterator[None]:
    """It listens on a port with a certificate of its own, for the server behind it."""
    assert NGINX is not None
    assert OPENSSL is not None
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *(OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=plan.agency.example"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    document = (ROOT / "docs/server-setup.md").read_text("utf-8")
    found = re.search(r"^```nginx\n(.*?)^```", document, re.DOTALL | re.MULTILINE)
    assert found is not None
    site = found[1]
    for documented, here in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/ssl/plan.agency.example.pem", str(certificate)),
        ("/etc/ssl/private/plan.agency.example.key", str(key)),
        ("http://127.0.0.1:8501;", f"http://127.0.0.1:{behind};"),
        ("/var/log/nginx/plan.log", str(folder / "nginx.log")),
    ):
        assert site.count(documented) == 1
        site = site.replace(documented, here)
    places = "".join(
        f"{name}_temp_path {folder / name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"pid {folder / 'nginx.pid'};\nevents {{}}\nhttp {{\n{places}{site}}}\n", "utf-8"
    )
    command = [NGINX, "-c", str(folder / "nginx.conf"), "-e", str(folder / "nginx.log")]
    process = subprocess.Popen([*command, "-g", "daemon off; master_process off;"])
    try:
        while answered(f"http://127.0.0.1:{port}/") is None:  # 400: this port speaks TLS
            assert process.poll() is None, (folder / "nginx.log").read_text("utf-8")
        yield
    finally:
        process.terminate()
        process.wait(10)
