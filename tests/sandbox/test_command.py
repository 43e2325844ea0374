"""The arguments that run a command in a sandbox."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.sandbox.command import Descriptors, Limits, Sandbox, System, limited, sandboxed

FILES = Descriptors(users=3, groups=4, hosts=5, status=6)
SYSTEM = System(("/usr", "/etc/localtime", "/etc/resolv.conf"), (("/bin", "usr/bin"),))
AS_ROOT = System(SYSTEM.paths, SYSTEM.links, is_root=True)
TMP, SHM, VAR_TMP = "/tmp", "/dev/shm", "/var/tmp"  # noqa: S108  # the sandbox's own
WORKSPACE = Path("/data/workspaces/s_1")


def test_the_arguments_of_a_command() -> None:
    """Each option closes a gap, so a missing one opens the sandbox."""
    assert sandboxed(["true"], Sandbox(WORKSPACE), SYSTEM, FILES) == [
        *("choom", "-n", "1000", "--"),
        *("bwrap", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"),
        *("--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net"),
        *("--json-status-fd", "6"),
        *("--ro-bind", "/usr", "/usr", "--ro-bind", "/etc/localtime", "/etc/localtime"),
        *("--symlink", "usr/bin", "/bin"),
        *("--perms", "0444", "--file", "3", "/etc/passwd", "--perms", "0444", "--file", "4", "/etc/group"),
        *("--perms", "0444", "--file", "5", "/etc/hosts"),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--perms", "1777", "--size", "268435456", "--tmpfs", TMP),
        *("--perms", "1777", "--size", "268435456", "--tmpfs", SHM),
        *("--dir", "/run", "--symlink", "../tmp", VAR_TMP),
        *("--bind", "/data/workspaces/s_1", "/workspace"),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/workspace"),
        *("--", *limited(["true"], Limits())),
    ]


def test_a_filter_of_system_calls_is_handed_over() -> None:
    arguments = sandboxed(
        ["true"], Sandbox(WORKSPACE), SYSTEM, Descriptors(users=3, groups=4, hosts=5, status=6, calls=7)
    )
    assert ("--seccomp", "7") in list(pairwise(arguments))


def test_the_limits_of_a_process() -> None:
    limits = Limits(memory_mb=1, processes=2, cpu_seconds=3, open_files=4, file_mb=5)
    assert limited(["true"], limits) == [
        *("nice", "-n", "5", "env", "--ignore-signal=XFSZ", "prlimit"),
        *("--nproc=2", "--data=1048576", "--fsize=5242880", "--cpu=3", "--nofile=4", "--core=0"),
        *("--", "true"),
    ]


def test_root_runs_commands_by_an_account_without_rights() -> None:
    """Root runs commands as an account without rights, because the kernel exempts root from the limit of processes.

    That account cannot read root's private folders.
    """
    arguments = sandboxed(["true"], Sandbox(WORKSPACE), AS_ROOT, FILES)
    end = arguments.index("bwrap")
    assert arguments[:end] == [
        *("choom", "-n", "1000", "--"),
        *("unshare", "--mount", "--", "sh", "-c", 'mount --no-mtab --bind "$1" /mnt && shift && exec "$@"', "sh"),
        *("/data/workspaces/s_1", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"),
    ]
    expected = sandboxed(["true"], Sandbox(WORKSPACE), SYSTEM, FILES)
    expected = expected[expected.index("bwrap") :]
    assert arguments[end:] == ["/mnt" if each == str(WORKSPACE) else each for each in expected]


def test_the_network_comes_with_its_configuration() -> None:
    arguments = sandboxed(["true"], Sandbox(WORKSPACE, network=True), SYSTEM, FILES)
    assert "--unshare-net" not in arguments
    assert "/etc/resolv.conf" in arguments


@pytest.mark.parametrize(
    ("hidden", "shown"), [("/usr/src/app/var", ["/usr/src/app/var"]), ("/srv/parley/var", []), ("/usrlocal", [])]
)
def test_hidden_folders_are_covered_where_the_system_shows_them(hidden: str, shown: list[str]) -> None:
    arguments = sandboxed(["true"], Sandbox(WORKSPACE, hidden=(Path(hidden),)), SYSTEM, FILES)
    found = [path for option, path in pairwise(arguments) if option == "--tmpfs"]
    assert found == [*shown, TMP, SHM]


@given(st.lists(st.text(), min_size=1), st.booleans(), st.booleans())
def test_a_command_is_passed_as_it_is(command: list[str], network: bool, is_root: bool) -> None:
    """A model's text is never an option of bubblewrap or a part of a shell command."""
    system = AS_ROOT if is_root else SYSTEM
    arguments = sandboxed(command, Sandbox(WORKSPACE, network=network), system, FILES)
    assert arguments[-len(command) :] == command
    assert arguments[: -len(command)] == sandboxed([], Sandbox(WORKSPACE, network=network), system, FILES)
