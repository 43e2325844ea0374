"""The argument list that runs a command in a sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

# Paths inside the sandbox.
WORKSPACE = "/workspace"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
# All environment variables of a command. bubblewrap gets no others either, because /proc/1/environ shows its variables.
ENVIRONMENT: Mapping[str, str] = {
    "HOME": WORKSPACE,
    "LANG": "C.UTF-8",
    "LOGNAME": "user",
    "PATH": PATH,
    "PYTHONUNBUFFERED": "1",
    "SHELL": "/bin/bash",
    "TERM": "xterm-256color",
    "USER": "user",
}
USER_ID = 1000
USERS = f"user:x:{USER_ID}:{USER_ID}::{WORKSPACE}:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n".encode()
GROUPS = f"user:x:{USER_ID}:\nnogroup:x:65534:\n".encode()
HOST_NAME = "sandbox"
HOSTS = f"127.0.0.1 localhost {HOST_NAME}\n::1 localhost\n".encode()
# With a network, commands find the names in this file of the host, too.
HOSTS_FILE = "/etc/hosts"

# If Parley runs as root, commands run under this account, because the kernel does not limit the processes of root, and
# root has more rights than a sandbox needs.
UNPRIVILEGED_ID = 65534
# This account cannot enter Parley's folders, so root mounts the workspace here, in a namespace of this command alone.
MOUNT_POINT = "/mnt"
_MOUNT_AND_RUN = f'mount --no-mtab --bind "$1" {MOUNT_POINT} && shift && exec "$@"'
# bubblewrap finds the folder of copies by its path. Do not run the command if that folder was replaced after the check.
_COMPARE_AND_RUN = (
    '[ "$(stat -c %d:%i "$1")" = "$2" ] || { echo "$1 has been replaced"; exit 126; }; shift 2; exec "$@"'
)

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# The parts of /etc and /var that programs below /usr need, as patterns. They contain no passwords, keys, users or
# services of this machine. Each one that exists takes time at the start of each command.
CONFIGURATION = (
    # The chosen version of each program.
    "/etc/alternatives",
    # Libraries, the time zone, types of files, numbers of protocols, and sources of names.
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/services",
    # Certificates of authorities where Debian, Fedora and openSUSE have them, and defaults of encryption. Private keys
    # are in other folders.
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/java/cacerts",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/var/lib/ca-certificates",
    # Without the first, Java fails when a program needs random numbers, hashes or TLS. Without the second, it logs
    # nothing. Other files beside them may contain passwords of proxies and of remote management.
    "/etc/java-*-openjdk/security",
    "/etc/java-*-openjdk/logging.properties",
    # Maven does not start without these. Its other files may contain passwords of repositories.
    "/etc/maven/m2.conf",
    "/etc/maven/logging",
    # Programs that draw text find their fonts by the first. Without the second, they write a cache to the workspace.
    "/etc/fonts",
    "/var/cache/fontconfig",
    # TeX does not start without its generated formats.
    "/var/lib/texmf",
)
NETWORK_CONFIGURATION = ("/etc/resolv.conf",)
# When memory runs short, the kernel ends these processes first. A command can undo this for itself, unless Parley has
# CAP_SYS_RESOURCE.
FIRST_TO_DIE = ("choom", "-n", "1000", "--")
MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one command.

    `memory_mb` limits the private memory of each process, which the kernel enforces, and of all processes together,
    which is measured. `workspace_mb` and `workspace_files` limit the folder, which is measured, and `file_mb` each
    file. `temporary_mb` is the size of /tmp.
    """

    memory_mb: int = 2048
    processes: int = 128
    cpu_seconds: int = 600
    open_files: int = 1024
    file_mb: int = 512
    workspace_mb: int = 1024
    workspace_files: int = 100_000
    temporary_mb: int = 256
    output_bytes: int = 10_000_000


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The place where a session's commands run. `hidden` are folders of the host that no command may read.

    `copies` is the name of a folder in the workspace that commands can read, but not make or change; "" for none.
    `copies_id` identifies it, as DEVICE:INODE.
    """

    workspace: Path
    network: bool = False
    hidden: tuple[Path, ...] = ()
    copies: str = ""
    copies_id: str = ""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class System:
    """The parts of the host that a sandbox shows read-only: folders and files, and links as (path, target)."""

    paths: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    is_root: bool = False


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open files that bubblewrap inherits: the texts of /etc/passwd, /etc/group and /etc/hosts, and a pipe for reports.

    `calls` is the filter of system calls, or None.
    """

    users: int
    groups: int
    hosts: int
    status: int
    calls: int | None = None


def sandboxed(command: Sequence[str], sandbox: Sandbox, system: System, files: Descriptors) -> list[str]:
    """Return the arguments that run `command` in `sandbox`. Pure."""
    folder = MOUNT_POINT if system.is_root else str(sandbox.workspace)
    arguments = [
        *FIRST_TO_DIE,
        *(_as_unprivileged(sandbox.workspace) if system.is_root else ()),
        *("bwrap", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", HOST_NAME),
        *("--unshare-user", "--disable-userns", "--uid", str(USER_ID), "--gid", str(USER_ID)),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if sandbox.network else ("--unshare-net",)),
        *("--json-status-fd", str(files.status)),
        *(("--seccomp", str(files.calls)) if files.calls is not None else ()),
    ]
    for path in system.paths:
        if sandbox.network or path not in NETWORK_CONFIGURATION:
            arguments += ["--ro-bind", path, path]
    for path, target in system.links:
        arguments += ["--symlink", target, path]
    for path in _hidden_inside(sandbox.hidden, system.paths):
        arguments += ["--tmpfs", path, "--remount-ro", path]
    for text, path in ((files.users, "/etc/passwd"), (files.groups, "/etc/group"), (files.hosts, HOSTS_FILE)):
        # These files need no mounts of their own, which take time, because "/" becomes read-only below.
        arguments += ["--perms", "0444", "--file", str(text), path]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for path in ("/tmp", "/dev/shm"):  # noqa: S108  # the sandbox's own
        arguments += ["--perms", "1777", "--size", str(sandbox.limits.temporary_mb * MB), "--tmpfs", path]
    arguments += ["--dir", "/run", "--symlink", "../tmp", "/var/tmp"]  # noqa: S108  # likewise
    arguments += ["--bind", folder, WORKSPACE]
    if sandbox.copies:
        shown = f"{WORKSPACE}/{sandbox.copies}"
        arguments += ["--ro-bind", f"{folder}/{sandbox.copies}", shown]
        command = ["sh", "-c", _COMPARE_AND_RUN, "sh", shown, sandbox.copies_id, *command]
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORKSPACE]
    return [*arguments, "--", *limited(command, sandbox.limits)]


def limited(command: Sequence[str], limits: Limits) -> list[str]:
    """Return the arguments that run a command within the kernel's limits for each process.

    The limits are set inside the sandbox, so that the number of processes counts only those of the sandbox.
    """
    of_process = {
        "nproc": limits.processes,
        "data": limits.memory_mb * MB,
        "fsize": limits.file_mb * MB,
        "cpu": limits.cpu_seconds,
        "nofile": limits.open_files,
        "core": 0,
    }
    settings = [f"--{name}={value}" for name, value in of_process.items()]
    # A write beyond the limit of file sizes fails, but does not end the program by a signal.
    return ["nice", "-n", "5", "env", "--ignore-signal=XFSZ", "prlimit", *settings, "--", *command]


def _as_unprivileged(workspace: Path) -> list[str]:
    account = [f"--reuid={UNPRIVILEGED_ID}", f"--regid={UNPRIVILEGED_ID}", "--clear-groups"]
    return ["unshare", "--mount", "--", "sh", "-c", _MOUNT_AND_RUN, "sh", str(workspace), "setpriv", *account, "--"]


def _hidden_inside(folders: Iterable[Path], shown: Sequence[str]) -> list[str]:
    """Return the hidden folders that are inside a shown folder, sorted so that outer folders come first."""
    return sorted({str(folder) for folder in folders if any(PurePosixPath(folder).is_relative_to(it) for it in shown)})
