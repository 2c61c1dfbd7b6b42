"""Run inside a sandbox: tries to get out past the edge, and prints a JSON list of what it could do.

    python3 network_attempts.py TCP_PORT UDP_PORT ABSTRACT_NAME

The ports and the name are of witnesses on the machine's own loopback, which nothing in here may reach.
"""

import contextlib
import ctypes
import functools
import json
import os
import socket
import struct
import sys
from collections.abc import Callable

tcp, udp, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
done: list[str] = []


def way(label: str) -> Callable[[Callable[[], object]], None]:
    def attempt(act: Callable[[], object]) -> None:
        try:
            result = act()
        except OSError:
            return
        if result is not False:
            done.append(label if result is None else f"{label}: {result}")

    return attempt


def call(number: int, *arguments: object) -> int:
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def send(kind: int, family: int, address: tuple[str, int]) -> None:
    with socket.socket(family, kind) as one:
        one.settimeout(1)
        one.connect(address)
        one.send(b"out")


def opened(family: int, kind: int, protocol: int = 0) -> None:
    socket.socket(family, kind, protocol).close()


@way("inherited descriptors")
def _() -> object:
    listed = os.listdir("/proc/self/fd")
    found: list[str] = []
    for number in listed:
        try:
            found.append(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except OSError:
            continue
    return [one for one in found if int(one.split()[0]) > 2 and "/fd" not in one.split()[1]] or False


ADDRESSES = (
    "127.0.0.1",
    "127.0.0.2",
    "0.0.0.0",
    "localhost",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    socket.gethostname(),
)
for host in ADDRESSES:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    way(f"TCP to {host}")(functools.partial(send, socket.SOCK_STREAM, family, (host, tcp)))

# in a network of its own only loopback exists, so datagrams to it go nowhere: the witness will tell
for host in ("127.0.0.1", "::1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.suppress(OSError):
        send(socket.SOCK_DGRAM, family, (host, udp))

for address in ("192.0.2.1", "198.51.100.1", "169.254.169.254", "10.0.0.1", "224.0.0.1", "255.255.255.255"):

    @way(f"UDP 53 to {address}")
    def _(address: str = address) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            one.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1", (address, 53))

    @way(f"TCP 53 to {address}")
    def _(address: str = address) -> None:
        send(socket.SOCK_STREAM, socket.AF_INET, (address, 53))


@way("IPv6 beyond loopback")
def _() -> object:
    send(socket.SOCK_DGRAM, socket.AF_INET6, ("2001:db8::1", 53))


@way("DNS")
def _() -> object:
    try:
        socket.getaddrinfo("artoo.example.org", 443)
    except socket.gaierror as error:
        return False if error.errno in (socket.EAI_AGAIN, socket.EAI_NONAME) else str(error)


for number in range(64):
    if number not in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            way(f"a socket of family {number}")(functools.partial(opened, number, kind))

for protocol in (socket.IPPROTO_ICMP, socket.IPPROTO_RAW, socket.IPPROTO_TCP, socket.IPPROTO_UDP):
    way("a raw socket")(functools.partial(opened, socket.AF_INET, socket.SOCK_RAW, protocol))


@way("an abstract socket")
def _() -> object:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\0" + name)


@way("a pair that is connected anew")
def _() -> object:
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.connect("\0" + name)


@way("a device")
def _() -> object:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, 25, b"eth0")


def netlink(kind: int, body: bytes) -> None:
    """An rtnetlink request; raises the kernel's answer."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as one:
        one.bind((0, 0))
        one.send(struct.pack("IHHII", 16 + len(body), kind, 0x5 | 0x600, 1, 0) + body)
        answer = one.recv(65536)
        code = struct.unpack_from("i", answer, 16)[0]
        if code:
            raise OSError(-code, "")


DEVICE = struct.pack("BBHiII", 0, 0, 0, 0, 0, 0) + b"\x10\0\x12\0\x09\0\1\0dummy\0\0\0"
ADDRESS = struct.pack("BBBBi", 2, 24, 0, 0, 1) + b"\x08\0\2\0\x0a\0\0\2"
ROUTE = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 4, 253, 1, 0) + b"\x08\0\4\0\1\0\0\0"
way("a new device")(lambda: netlink(16, DEVICE))
way("a new address")(lambda: netlink(20, ADDRESS))
way("a new route")(lambda: netlink(24, ROUTE))


@way("another interface")
def _() -> object:
    return [one for _, one in socket.if_nameindex() if one != "lo"] or False


@way("io_uring")
def _() -> object:
    call(425, 8, ctypes.create_string_buffer(120))


for target in ("/proc/1/ns/net", "/proc/self/ns/net", f"/proc/{os.getppid()}/ns/net"):

    @way(f"setns {target}")
    def _(target: str = target) -> None:
        descriptor = os.open(target, os.O_RDONLY)
        if libc.setns(descriptor, 0x40000000) < 0:
            raise OSError(ctypes.get_errno(), "")


for flags in (0x40000000, 0x10000000, 0x50000000):

    @way(f"unshare {flags:x}")
    def _(flags: int = flags) -> None:
        if libc.unshare(flags) < 0:
            raise OSError(ctypes.get_errno(), "")


@way("ptrace")
def _() -> object:
    if libc.ptrace(16, 1, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "")


@way("a descriptor of another process")
def _() -> object:
    pidfd = os.pidfd_open(1)
    found: list[int] = []
    for number in range(3, 64):
        try:
            taken = call(438, pidfd, number, 0)
        except OSError:
            continue
        if os.readlink(f"/proc/self/fd/{taken}").startswith("socket:"):
            found.append(number)
    return found or False


@way("processes outside")
def _() -> object:
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > 10_000] or False


print(json.dumps(sorted(set(done))))
