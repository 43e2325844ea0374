"""The systemd units."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path

import pytest
from django.core.management import get_commands

from config import service_manager
from config.options import OPTIONS
from tests.commands.process import ROOT, serving
from tests.support.notify_socket import NotifySocket

UNITS = sorted((ROOT / "deploy/systemd").glob("parley*.service"))
SERVERS = [unit for unit in UNITS if unit.stem != "parley-backup"]


def read(unit: Path) -> RawConfigParser:
    parser = RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd tells capitals apart
    parser.read_string(unit.read_text())
    return parser


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_runs_a_command_with_settings_that_exist(unit: Path) -> None:
    """OPS-07: each unit runs an existing command with existing settings, at the paths of docs/deployment.md."""
    service = read(unit)["Service"]
    words = shlex.split(service["ExecStart"])
    given = [word.split("=", 1)[0] for word in [*words, *service["Environment"].split()] if re.match(r"[A-Z_]+=", word)]
    assert words[-1] in get_commands() or words[-3:] == ["backup", "--keep", "14"]
    assert {"/opt/parley/.venv/bin/python", "manage.py"} < set(words)
    assert set(given) <= {*OPTIONS, "PYTHONUNBUFFERED"}
    assert (service["User"], service["NoNewPrivileges"]) == ("parley", "yes")


@pytest.mark.parametrize("unit", SERVERS, ids=lambda unit: unit.name)
def test_server_reports_to_systemd_and_ends_in_its_own_time(unit: Path) -> None:
    """OPS-07, RUN-15: turns are not cut off by systemd's default of 90 seconds, or by a SIGTERM to child processes."""
    service = read(unit)["Service"]
    assert (service["Type"], service["KillMode"]) == ("notify", "mixed")
    grace = 300 if "runagents" in service["ExecStart"] or unit.stem == "parley" else 0
    assert int(service["TimeoutStopSec"]) > grace
    assert int(service["WatchdogSec"]) >= 30


@pytest.mark.parametrize("unit", SERVERS, ids=lambda unit: unit.name)
def test_server_survives_a_child_process_that_the_kernel_ends(unit: Path) -> None:
    """OPS-07: by default, systemd stops a service if the kernel ends one of its processes when memory runs short."""
    assert read(unit)["Service"].get("OOMPolicy") == "continue"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """OPS-07: systemd accepts every line of the units; it would only log unknown ones."""
    for path in sorted((ROOT / "deploy/systemd").iterdir()):
        text = (
            path.read_text().replace("/opt/parley/.venv/bin/python", sys.executable).replace("/opt/parley", str(ROOT))
        )
        instance = path.name.replace("@.", "@8001.")
        (tmp_path / instance).write_text(text)
    units = sorted(str(path) for path in tmp_path.iterdir())
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    own = [line for line in checked.stderr.splitlines() if str(tmp_path) in line or "parley" in line]
    assert (checked.returncode, own) == (0, [])


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[NotifySocket]:
    manager = NotifySocket(tmp_path / "notify")
    yield manager
    manager.close()


@pytest.mark.server
@pytest.mark.parametrize("server", ["uvicorn", "daphne"])
def test_server_tells_systemd_when_it_is_ready_lives_and_stops(
    data: Path, tmp_path: Path, manager: NotifySocket, server: str
) -> None:
    """OPS-07: the start succeeds when pages open, and systemd notices a hanging event loop."""
    settings = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000", "WEB_SERVER": server}
    with serving(data, **settings) as started:
        assert [manager.next() for _ in range(3)] == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]
        started.process.send_signal(signal.SIGTERM)
        while (state := manager.next()) == "WATCHDOG=1":
            pass
        assert state == "STOPPING=1"


HANGING = "import signal, time\nsignal.signal(signal.SIGUSR1, lambda *_: time.sleep(3600))\n"


@pytest.mark.server
@pytest.mark.parametrize("server", ["uvicorn", "daphne"])
def test_server_that_hangs_ends_itself(data: Path, tmp_path: Path, manager: NotifySocket, server: str) -> None:
    """OPS-07: with HANG_SECONDS, the log shows where the process hung, and the container is restarted."""
    (tmp_path / "sitecustomize.py").write_text(HANGING)
    settings = {"PYTHONPATH": str(tmp_path), "NOTIFY_SOCKET": str(tmp_path / "notify"), "WEB_SERVER": server}
    with serving(data, **settings, HANG_SECONDS="1.5") as started:
        signs = [manager.next() for _ in range(6)]  # for longer than HANG_SECONDS
        assert signs == ["READY=1", *["WATCHDOG=1"] * 5]
        started.process.send_signal(signal.SIGUSR1)
        assert started.process.wait(20) == 1
        assert started.process.stdout
        assert "sitecustomize.py" in started.process.stdout.read()


def test_process_without_systemd_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-07: a process runs without a service manager, and also if its service manager is gone."""
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    service_manager.notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/notify")
    service_manager.notify("READY=1")
    monkeypatch.setenv("WATCHDOG_USEC", "30000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert service_manager.watchdog_seconds() == 0
