"""Machines in network namespaces, a server in another, and a router between them whose wires can be cut.

    m0 ──┐
    m1 ──┤ router ── server
    m2 ──┘

A cut of one way is a rule of the router that throws packets away without a word, so that who sends waits, as with a
real one. Needs root, `ip`, `unshare` and `nsenter` (iproute2 and util-linux), nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Literal, Self

Way = Literal["out", "in", "both"]
"""What is lost: what the machine sends, what it is sent, or all of it with the link itself."""

NEEDED = ("ip", "unshare", "nsenter")
EVERYBODY = "10.77.0.0/16"
_ROUTER, _SERVER = 100, 99
_SECONDS = 20.0


class NoNamespaces(Exception):
    """Why there are no network namespaces here."""


class Network:
    """`machines` places with a server's; a context manager. They are gone with this process, however it ends."""

    def __init__(self, machines: int) -> None:
        self._machines = machines
        self._places: dict[int, subprocess.Popen[bytes]] = {}

    @classmethod
    def made(cls, machines: int) -> Self:
        """With all its wires. Raises NoNamespaces."""
        missing = [name for name in NEEDED if shutil.which(name) is None]
        if os.geteuid() != 0 or missing:
            why = f"{', '.join(missing)} is not installed" if missing else "only root may make them"
            raise NoNamespaces(f"no network namespaces: {why}")
        network = cls(machines)
        try:
            network._make()
        except (OSError, subprocess.SubprocessError) as error:
            network.close()
            said = getattr(error, "stderr", None) or b""
            raise NoNamespaces(f"no network namespaces: {error} {said.decode(errors='replace')}") from error
        return network

    @property
    def server(self) -> str:
        """The address at which the server is."""
        return _address(_SERVER)

    def at_machine(self, machine: int) -> list[str]:
        """What stands before a command that is to run there."""
        return self._at(machine)

    def at_server(self) -> list[str]:
        """The same for the server."""
        return self._at(_SERVER)

    def cut(self, machine: int, way: Way) -> None:
        """From now on."""
        match way:
            case "out":
                self._route(f"ip rule add priority 10 from {_address(machine)} blackhole")
            case "in":
                self._route(f"ip rule add priority 10 to {_address(machine)} blackhole")
            case "both":
                self._route(f"ip link set wire{machine} down")

    def mend(self, machine: int, way: Way) -> None:
        """The inverse of `cut`."""
        match way:
            case "out":
                self._route(f"ip rule del priority 10 from {_address(machine)} blackhole")
            case "in":
                self._route(f"ip rule del priority 10 to {_address(machine)} blackhole")
            case "both":
                self._route(f"ip link set wire{machine} up")

    def close(self) -> None:
        """Everything goes with the last process in it."""
        for holder in self._places.values():
            holder.kill()
            holder.communicate()
        self._places.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _make(self) -> None:
        for place in (_ROUTER, _SERVER, *range(self._machines)):
            self._places[place] = _namespace()
        self._route("echo 1 > /proc/sys/net/ipv4/ip_forward", "ip link set lo up")
        for place in (_SERVER, *range(self._machines)):
            self._route(
                f"ip link add wire{place} type veth peer name eth0 netns {self._places[place].pid}",
                f"ip address add {_gate(place)}/24 dev wire{place}",
                f"ip link set wire{place} up",
            )
            _run(
                self._at(place),
                f"ip address add {_address(place)}/24 dev eth0",
                "ip link set lo up",
                "ip link set eth0 up",
                f"ip route add default via {_gate(place)}",
            )

    def _route(self, *lines: str) -> None:
        _run(self._at(_ROUTER), *lines)

    def _at(self, place: int) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._places[place].pid}/ns/net", "--"]


def _namespace() -> subprocess.Popen[bytes]:
    """A process that holds a namespace until its input ends, as it does when this process is killed."""
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    if holder.stdout.readline() != b"ready\n":
        holder.kill()
        holder.communicate()
        raise OSError("unshare --net is refused")
    return holder


def _run(before: Sequence[str], *lines: str) -> None:
    script = "set -e\n" + "\n".join(lines)
    subprocess.run([*before, "sh", "-c", script], check=True, capture_output=True, timeout=_SECONDS)


def _address(place: int) -> str:
    return f"10.77.{place}.2"


def _gate(place: int) -> str:
    return f"10.77.{place}.1"
