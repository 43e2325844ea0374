"""The image, checked without Docker: the Dockerfile is read, and the copied files are run as in the image."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands

from config.options import OPTIONS
from tests.commands.process import ROOT, running
from tests.deploy.dockerfile import stages
from tests.support.redis import free_port

DOCKERFILE = ROOT / "deploy/Dockerfile"
BUILD, FINAL = stages(DOCKERFILE)


def copied() -> list[str]:
    """Return the files that the build copies from the repository."""
    return [source for value in BUILD.all("COPY") for source in value.split()[:-1]]


def test_image_runs_a_command_of_parley_as_no_one_special() -> None:
    """OPS-07: the user is a number, which a cluster can check, and the command has the exec form, so that it gets
    signals."""
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", FINAL.last("USER"))
    assert FINAL.command("ENTRYPOINT") == ["python", "manage.py"]
    assert FINAL.command("CMD")[0] in get_commands()
    assert FINAL.last("STOPSIGNAL") == "SIGTERM"
    assert set(FINAL.environment()) - {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"} <= set(OPTIONS)
    assert FINAL.environment()["PARLEY_DATA"] == FINAL.last("VOLUME")
    assert FINAL.last("EXPOSE").split() == [FINAL.environment()[name] for name in ("PORT", "MONITORING_PORT")]


def test_image_is_small_and_comes_from_the_lock() -> None:
    """OPS-07: the image has no build tools and no package lists, and each package has a checksum."""
    installs = [value for value in FINAL.all("RUN") if "apt-get" in value]
    assert all("--no-install-recommends" in value and "rm -rf /var/lib/apt/lists/*" in value for value in installs)
    assert any("--require-hashes -r requirements/$LOCK.txt" in value for value in BUILD.all("RUN"))
    locks = [value.partition("=")[2] for value in BUILD.all("ARG")] + re.findall(r"LOCK=(\w+)", DOCKERFILE.read_text())
    assert [lock for lock in locks if not (ROOT / f"requirements/{lock}.txt").exists()] == []
    assert {stage.base for stage in (BUILD, FINAL)} == {BUILD.base}
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", BUILD.base)
    assert FINAL.all("COPY") == ["--from=build /opt/parley /opt/parley"]


def test_what_is_copied_exists_and_reaches_the_build() -> None:
    """OPS-07: all copied files exist and are not ignored, so that the build works elsewhere."""
    lines = (ROOT / "deploy/Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert let_in == set(copied())
    assert [source for source in copied() if not (ROOT / source).exists()] == []
    assert not any(fnmatch.fnmatch(secret, rule) for secret in ("var", ".env", ".git") for rule in let_in)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The contents of /opt/parley in the image, without the packages."""
    tree = tmp_path / "parley"
    for source in copied():
        target = tree / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, target)
    return tree


@pytest.mark.server
@pytest.mark.skipif(not shutil.which("bwrap"), reason="it makes the root read-only")
def test_image_runs_with_a_read_only_root(tree: Path, tmp_path: Path) -> None:
    """OPS-07: the image runs as user 10001 and writes only to the volume and /tmp, and the health check works."""
    data, port = tmp_path / "data", str(free_port())
    data.mkdir()
    user, group = FINAL.last("USER").split(":")
    sandbox = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(data), str(data)]
    sandbox += ["--unshare-user", "--uid", user, "--gid", group, "--chdir", str(tree), "--die-with-parent"]
    environment = {**FINAL.environment(), "PATH": "/usr/bin:/bin", "PARLEY_DATA": str(data), "PORT": "0"}
    environment |= {"MONITORING_PORT": port, "HOST": "127.0.0.1"}
    command = [*sandbox, sys.executable, *FINAL.command("ENTRYPOINT")[1:], *FINAL.command("CMD")]
    with running(["-c", f"import os; os.execvp('bwrap', {command!r})"], environment) as process:
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line)
            if "Parley is ready" in line:
                break
        else:
            raise AssertionError("".join(printed))
        (check,) = re.findall(r"CMD (\[.*\])$", FINAL.last("HEALTHCHECK"))
        words = [word.replace("9464", port) for word in json.loads(check)]
        assert subprocess.run([sys.executable, *words[1:]], check=False).returncode == 0
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert (data / "parley.sqlite3").exists()
