"""Runs a command under a seccomp filter that refuses system calls, as a container's profile does.

confine.py ERROR CALL,.. COMMAND...: the calls fail with that error, EPERM or ENOSYS. `proc_mem` is reading and writing
/proc/PID/mem: at the high offsets that addresses are, and no file has. `give_descriptor` is SECCOMP_IOCTL_NOTIF_ADDFD
(Linux 5.9), `answer` is SECCOMP_IOCTL_NOTIF_SEND, and `socket_network` the socket option SO_NETNS_COOKIE (Linux 5.14).
"""

import ctypes
import errno
import os
import struct
import sys

# numbers of x86-64 and of aarch64
CALLS = {
    "ioctl": (16, 29),
    "getsockopt": (55, 209),
    "getpriority": (140, 141),
    "io_uring_setup": (425, 425),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
}
ALIASES = {
    "process_vm_readv": ["process_vm_readv", "process_vm_writev"],
    "proc_mem": ["pread64", "pwrite64"],
    "give_descriptor": ["ioctl"],
    "answer": ["ioctl"],
    "socket_network": ["getsockopt"],
}
NOTIF_ADDFD, NOTIF_SEND, SO_NETNS_COOKIE = 0x40182103, 0xC0182101, 71
# where the low half of an argument is
ARGUMENTS = [16 + 8 * number for number in range(6)]
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000

error, calls, command = getattr(errno, sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
column = 0 if os.uname().machine == "x86_64" else 1


def instruction(code, value, over=0):
    return struct.pack("HBBI", code, 0, over, value)


fail, allow = instruction(RETURN, FAIL | error), instruction(RETURN, ALLOW)


def fail_if_equal(argument, value):
    return instruction(LOAD, ARGUMENTS[argument]) + instruction(IF_EQUAL, value, 1) + fail + allow


program = instruction(LOAD, 0)
for call in calls:
    body = {
        # the high half of the offset
        "proc_mem": instruction(LOAD, 44) + instruction(IF_EQUAL, 0, 1) + allow + fail,
        "give_descriptor": fail_if_equal(1, NOTIF_ADDFD),
        "answer": fail_if_equal(1, NOTIF_SEND),
        "socket_network": fail_if_equal(2, SO_NETNS_COOKIE),
    }.get(call, fail)
    for name in ALIASES.get(call, [call]):
        program += instruction(IF_EQUAL, CALLS[name][column], len(body) // 8) + body
program += instruction(RETURN, ALLOW)
buffer = ctypes.create_string_buffer(program, len(program))
filter = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
# root needs no promise, and container engines make none for it
if os.geteuid() != 0:
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
if libc.prctl(PR_SET_SECCOMP, 2, filter, 0, 0) != 0:
    sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
os.execvp(command[0], command)
