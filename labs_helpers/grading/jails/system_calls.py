"""The system calls that a jail refuses, as a seccomp filter, and those that an answer's process may not make either.

They make memory that no process and no file system of the jail shows, or namespaces in which an answer would be root
and could mount file systems without a limit; or no answer needs them, and bugs of the kernel are often found in them.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping
from errno import ENOSYS, EPERM

# Numbers of linux/audit.h and of each architecture's unistd.h.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS = {
    "memfd_create": (319, 279), "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "unshare": (272, 97), "userfaultfd": (323, 282), "bpf": (321, 280), "perf_event_open": (298, 241),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "io_uring_setup": (425, 425), "memfd_secret": (447, 447),
}  # fmt: skip
# What an answer could stop its judge with, or read it.
_TO_OTHERS = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
}  # fmt: skip
_CLONE, _CLONE3 = (56, 220), 435
_NAMESPACES = 0x7E020080  # flags of clone; of clone3 a filter cannot see them, and the C library then calls clone
_X32 = 0x40000000  # other numbers of the same calls
_LOAD, _IS, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # linux/bpf_common.h
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_NO_NEW_PRIVS, _SECCOMP, _OF_A_FILTER = 38, 22, 2  # linux/prctl.h, linux/seccomp.h
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000  # linux/seccomp.h


def _filter(calls: Mapping[str, tuple[int, int]]) -> bytes:
    """Return the program for this machine that refuses these calls; b'' where its numbers are not known."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return b""
    column = list(_ARCHITECTURES).index(machine)
    program = [(_LOAD, 0, 0, _ARCHITECTURE), (_IS, 1, 0, _ARCHITECTURES[machine]), (_RETURN, 0, 0, _FAIL | EPERM)]
    program += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _FAIL | EPERM)]
    for call in calls.values():
        program += [(_IS, 0, 1, call[column]), (_RETURN, 0, 0, _FAIL | EPERM)]
    program += [(_IS, 0, 1, _CLONE3), (_RETURN, 0, 0, _FAIL | ENOSYS), (_IS, 0, 3, _CLONE[column])]
    program += [(_LOAD, 0, 0, _FIRST_ARGUMENT), (_ANY_OF, 0, 1, _NAMESPACES), (_RETURN, 0, 0, _FAIL | EPERM)]
    return b"".join(struct.pack("HBBI", *line) for line in [*program, (_RETURN, 0, 0, _ALLOW)])


REFUSED = _filter(_CALLS)
SIGNALS_REFUSED = _filter(_TO_OTHERS)


def refuse_signals() -> None:
    """From now on neither this process nor its children send signals, not even to themselves."""
    room = ctypes.create_string_buffer(SIGNALS_REFUSED, len(SIGNALS_REFUSED))
    program = struct.pack("HxxxxxxP", len(SIGNALS_REFUSED) // 8, ctypes.addressof(room))
    if SIGNALS_REFUSED:
        prctl = ctypes.CDLL(None).prctl
        prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        prctl(_SECCOMP, _OF_A_FILTER, program, 0, 0)
