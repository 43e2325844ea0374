"""A filter of system calls for bubblewrap. It denies calls that no command needs and that often allowed escapes.

libseccomp, which most distributions install, makes the filter for this machine's architecture.
"""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache

LIBRARY = "libseccomp.so.2"
# These fail with EPERM. Calls of debuggers are allowed, because a sandbox can only see its own processes.
DENIED = (
    *("add_key", "keyctl", "request_key"),
    *("bpf", "perf_event_open", "userfaultfd"),
    *("io_uring_enter", "io_uring_register", "io_uring_setup"),
    *("chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount", "open_tree"),
    *("pivot_root", "setns", "umount", "umount2", "unshare"),
    *("delete_module", "finit_module", "init_module", "kexec_file_load", "kexec_load"),
    *(
        "acct",
        "ioperm",
        "iopl",
        "open_by_handle_at",
        "quotactl",
        "quotactl_fd",
        "reboot",
        "swapoff",
        "swapon",
        "syslog",
    ),
    *("clock_adjtime", "clock_settime", "settimeofday", "vhangup"),
)
ALLOW = 0x7FFF0000
FAIL = 0x00050000 | errno.EPERM


@cache
def program() -> bytes:
    """Return the filter in the kernel's format, or b"" if this machine has no libseccomp."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return b""
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
    try:
        for name in DENIED:
            number = library.seccomp_syscall_resolve_name(name.encode())
            # A negative number means that this architecture does not have the call.
            if number >= 0 and library.seccomp_rule_add_array(context, ctypes.c_uint32(FAIL), number, 0, None):
                return b""
        file = os.memfd_create("filter", os.MFD_CLOEXEC)
        try:
            if library.seccomp_export_bpf(context, file):
                return b""
            return os.pread(file, 1 << 16, 0)
        finally:
            os.close(file)
    finally:
        library.seccomp_release(context)
