"""The container of the planning server: built and started here, on a Debian made here."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.planning_server import answered

ROOT = Path(__file__).parents[2]
TOOLS = ("buildah", "debootstrap")
# What pip and TLS are told on this machine, for the machine inside as well.
SETTINGS = (Path("/etc/pip.conf"), Path.home() / ".config/pip", Path("/etc/ssl/certs"))
PORT = 8501  # of its health check

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not all(map(shutil.which, TOOLS)) or os.geteuid() != 0,
        reason=f"needs root and, on Debian: apt-get install {' '.join(TOOLS)}",
    ),
]


def test_it_is_built_ready_and_written_to_its_volume_alone(tmp_path):
    store = ("--root", f"{tmp_path}/store", "--runroot", f"{tmp_path}/run")

    def buildah(verb: str, *arguments: str) -> str:
        command = ["buildah", *store, "--storage-driver", "vfs", verb, *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    system, context = tmp_path / "system", tmp_path / "context"
    options = ("--variant=minbase", "--include=python3-venv,ca-certificates")
    subprocess.run(["debootstrap", *options, "bookworm", str(system)], check=True)
    base = buildah("from", "scratch")
    buildah("add", "--quiet", base, str(system), "/")
    buildah("commit", "--quiet", base, "localhost/system")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run([*build, "--outdir", str(context / "dist"), str(ROOT)], check=True)
    for name in ("Containerfile", "requirements-server.lock"):
        shutil.copy(ROOT / name, context)
    inside = [f"--volume={path}:{path}:ro" for path in SETTINGS if path.exists()]
    isolated = ("--isolation", "chroot", *inside)
    named = ("--build-arg", "BASE=localhost/system", "--tag", "localhost/planning")
    buildah("bud", "--format", "docker", "--network", "host", *isolated, *named, str(context))

    container = buildah("from", "localhost/planning")
    run = ["buildah", *store, "--storage-driver", "vfs", "run", "--isolation", "chroot", container]
    options = ("--address", "https://plan.agency.example/plan", "--no-login")
    python, server = "/opt/rpexplore/bin/python", "/opt/rpexplore/bin/rpexplore"
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [*run, "--", server, "app", "--planning-only", "--host", "0.0.0.0", *options],
            stdout=said,
            stderr=said,
        )
    try:
        deadline = time.monotonic() + 120
        while answered(f"http://127.0.0.1:{PORT}/ready") != 200:
            assert process.poll() is None, (tmp_path / "said").read_text("utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.2)
        probe = (
            "import os; places = '/', '/opt', '/etc', '/data'; "
            "print(os.getuid(), [place for place in places if os.access(place, os.W_OK)])"
        )
        writable = subprocess.run(
            [*run, "--", python, "-c", probe], check=True, capture_output=True, text=True
        )
        assert writable.stdout.strip() == "65532 ['/data']"
        assert answered(f"http://127.0.0.1:{PORT}/plan/") == 421
    finally:
        process.terminate()
        process.wait(30)
