"""Shuts this process in, before it reads a byte of an upload: what is open stays open, and nothing else can be opened.

Three layers, so that one which a host lacks is not missed: limits that every kernel has, empty namespaces, and a list
of the system calls that reading, counting and answering take. All others fail with EPERM.
"""

import ctypes
import os
import resource
import signal
import struct
import sys
from contextlib import suppress

MEMORY = 1 << 30

NEW_USER_AND_NETWORK = 0x10000000 | 0x40000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION = 0x20080522

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
#: Numbers on x86_64 and on aarch64.
ALLOWED_CALLS = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "exit": (60, 93),
    "futex": (202, 98),
    "clock_gettime": (228, 113),
    "exit_group": (231, 94),
    "newfstatat": (262, 79),
    "preadv": (295, 69),
    "getrandom": (318, 278),
    "preadv2": (327, 286),
}

LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # the lower half is the errno: EPERM


def enter(seconds: int, out: int | None = None, out_bytes: int = 0) -> None:
    """`out` is a descriptor that stays open for writing, up to `out_bytes`."""
    close_files(out)
    if sys.platform == "linux":
        leave_namespaces()
    set_limits(seconds, out_bytes)
    if sys.platform == "linux":
        give_up_rights()
        filter_calls()


def close_files(out: int | None = None) -> None:
    """All but the upload, the answer and `out`: uvloop hands on what its process holds, listening sockets among it."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) != out:
            with suppress(OSError):  # the listing held one itself
                os.close(int(name))


def leave_namespaces() -> None:
    """Best effort: hosts may refuse it."""
    _libc().unshare(NEW_USER_AND_NETWORK)


def set_limits(seconds: int, out_bytes: int = 0) -> None:
    for what, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, out_bytes),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 0),  # what is open stays open
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def give_up_rights() -> None:
    _libc().capset(struct.pack("Ii", CAPABILITY_VERSION, 0), bytes(24))
    # Capabilities first: when they change, the kernel forgets the next two.
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def filter_calls() -> None:
    """Best effort: not every kernel has seccomp, and other machines number their calls in other ways."""
    if os.uname().machine not in ARCHITECTURES:
        return
    program = _program(*ARCHITECTURES[os.uname().machine])
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header)


def _program(architecture: int, column: int) -> bytes:
    """Classic BPF over seccomp_data: the call's number lies at 0, the machine's at 4."""
    calls = [numbers[column] for numbers in ALLOWED_CALLS.values()]
    steps = [(LOAD, 0, 0, 4), (JUMP_IF_EQUAL, 0, len(calls) + 1, architecture), (LOAD, 0, 0, 0)]
    steps += [(JUMP_IF_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    steps += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _prctl(option: int, value: int, pointer: bytes | None = None) -> None:
    zero = ctypes.c_ulong(0)
    _libc().prctl(option, ctypes.c_ulong(value), ctypes.c_char_p(pointer), zero, zero)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
