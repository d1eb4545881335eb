"""The system calls that a jail refuses, as a seccomp filter, and further calls that an answer's process may not make.

Some would create memory that no process and no file system of the jail shows, or namespaces in which an answer would be
root and could mount file systems without a limit. Others are refused because no answer needs them, and the kernel's
bugs are often found in them. An answer's process also may not disturb its judge or leave data for another answer's
process: ranks, which are separate processes, would otherwise exchange data that the message counts of their check do
not include.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Mapping
from errno import ENOSYS, EPERM
from typing import Any

# Numbers of linux/audit.h and of each architecture's unistd.h.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS = {
    "memfd_create": (319, 279), "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "unshare": (272, 97), "userfaultfd": (323, 282), "bpf": (321, 280), "perf_event_open": (298, 241),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "io_uring_setup": (425, 425), "memfd_secret": (447, 447),
}  # fmt: skip
# What an answer could stop its judge with, or read it; what it could leave word in.
_TO_OTHERS: dict[str, tuple[int | None, int | None]] = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "socket": (41, 198), "flock": (73, 32), "openat2": (437, 437), "creat": (85, None), "mkdir": (83, None),
    "mkdirat": (258, 34), "mknod": (133, None), "mknodat": (259, 33), "link": (86, None), "linkat": (265, 37),
    "symlink": (88, None), "symlinkat": (266, 36), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "unlink": (87, None), "unlinkat": (263, 35), "rmdir": (84, None), "chmod": (90, None), "fchmod": (91, 52),
    "fchmodat": (268, 53), "fchmodat2": (452, 452), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
}  # fmt: skip
_CLONE, _CLONE3 = (56, 220), 435
_NAMESPACES = 0x7E020080  # flags of clone; of clone3 a filter cannot see them, and the C library then calls clone
_X32 = 0x40000000  # other numbers of the same calls
_LOAD, _IS, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # linux/bpf_common.h
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
# (numbers of a call, the place of an argument, a test, its value): of asm-generic/fcntl.h, sockios.h and sched.h.
_CREATE, _ANY = 0x40, 0xFFFFFFFF
_SOMETIMES = (
    ((2, None), 1, _ANY_OF, _CREATE), ((257, 56), 2, _ANY_OF, _CREATE),
    # locks, owners of files and sockets, signals, leases
    *(((72, 25), 1, _IS, command) for command in (6, 7, 8, 10, 15, 37, 38, 1024, 1026)),
    *(((16, 29), 1, _IS, request) for request in (0x8901, 0x8902)),
    # limits, priorities and schedulers of other processes
    ((302, 261), 0, _ANY_OF, _ANY), ((141, 140), 0, _ANY_OF, _ANY), ((141, 140), 1, _ANY_OF, _ANY),
    *((call, 0, _ANY_OF, _ANY) for call in ((203, 122), (144, 119), (142, 118), (314, 274))),
    ((251, 30), 1, _ANY_OF, _ANY),
)  # fmt: skip
_NO_NEW_PRIVS, _SECCOMP, _OF_A_FILTER = 38, 22, 2  # linux/prctl.h, linux/seccomp.h
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000  # linux/seccomp.h


def _filter(calls: Mapping[str, tuple[int | None, ...]], sometimes: Iterable[tuple[Any, int, int, int]] = ()) -> bytes:
    """Return the program for this machine that refuses these calls, some of them only with some arguments; b'' if
    the machine's call numbers are unknown."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return b""
    column = list(_ARCHITECTURES).index(machine)
    program = [(_LOAD, 0, 0, _ARCHITECTURE), (_IS, 1, 0, _ARCHITECTURES[machine]), (_RETURN, 0, 0, _FAIL | EPERM)]
    program += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _FAIL | EPERM)]
    for call in calls.values():
        if (number := call[column]) is not None:
            program += [(_IS, 0, 1, number), (_RETURN, 0, 0, _FAIL | EPERM)]
    for call, argument, test, value in sometimes:
        if call[column] is not None:
            program += [(_IS, 0, 4, call[column]), (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument), (test, 0, 1, value)]
            program += [(_RETURN, 0, 0, _FAIL | EPERM), (_LOAD, 0, 0, _NUMBER)]
    program += [(_IS, 0, 1, _CLONE3), (_RETURN, 0, 0, _FAIL | ENOSYS), (_IS, 0, 3, _CLONE[column])]
    program += [(_LOAD, 0, 0, _FIRST_ARGUMENT), (_ANY_OF, 0, 1, _NAMESPACES), (_RETURN, 0, 0, _FAIL | EPERM)]
    return b"".join(struct.pack("HBBI", *line) for line in [*program, (_RETURN, 0, 0, _ALLOW)])


REFUSED = _filter(_CALLS)
_REFUSED_TO_ANSWERS = _filter(_TO_OTHERS, _SOMETIMES)


def keep_from_others() -> None:
    """Forbid this process and its children, from now on, to send signals, even to themselves, or to change the state
    of other processes."""
    room = ctypes.create_string_buffer(_REFUSED_TO_ANSWERS, len(_REFUSED_TO_ANSWERS))
    program = struct.pack("HxxxxxxP", len(_REFUSED_TO_ANSWERS) // 8, ctypes.addressof(room))
    if _REFUSED_TO_ANSWERS:
        prctl = ctypes.CDLL(None).prctl
        prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        prctl(_SECCOMP, _OF_A_FILTER, program, 0, 0)
