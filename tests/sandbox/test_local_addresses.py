"""Which addresses are this machine's own: asked of the real kernel."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import pytest

import artoo
from artoo.sandbox.network.address_policy import is_own, problem_with
from artoo.sandbox.network.allowlist import Destination, Permits

_BESIDE = """
import sys
from contextlib import suppress
from ipaddress import ip_address
from artoo.sandbox.network.address_policy import is_own
print(*(is_own(ip_address(text)) for text in sys.argv[1:]))
"""
_NETWORK = """
ip link set lo up
ip addr add 198.51.100.7/24 dev lo && ip addr add 198.51.100.8/24 dev lo && ip route add local 203.0.113.0/24 dev lo
ip -6 addr add 2001:db8:9::1/64 dev lo nodad
ip route add blackhole 10.10.0.0/24
"""


@pytest.mark.parametrize(
    ("address", "own"),
    [("127.0.0.1", True), ("127.8.9.10", True), ("::1", True), ("198.51.100.1", False), ("2001:db8::1", False)],
)
def test_what_the_kernel_says(address: str, own: bool) -> None:
    """Loopback is this machine's; addresses for documentation are not."""
    assert is_own(ip_address(address)) is own


def test_every_kind_of_own_address_is_found() -> None:
    """Second addresses, local ranges and IPv6 as well, at once after they were set; their neighbours are none."""
    own = ("198.51.100.7", "198.51.100.8", "203.0.113.99", "2001:db8:9::1")
    others = ("203.0.112.99", "10.10.0.1", "93.184.216.34", "2001:db8:8::1")
    script = f'set -e\n{_NETWORK}\nexec "$@"'
    argv = ("unshare", "--net", "sh", "-c", script, "sh", sys.executable, "-c", _BESIDE, *own, *others)
    if os.geteuid() != 0:
        argv = (argv[0], "--map-root-user", *argv[1:])
    env = {**os.environ, "PYTHONPATH": str(Path(artoo.__file__).parent.parent)}
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        pytest.skip("no program to make a network with")
    if done.returncode:
        pytest.skip(f"no network of one's own here: {done.stderr[-200:]}")
    assert done.stdout.split() == ["True"] * len(own) + ["False"] * len(others)


def _towards_others() -> list[str]:
    """The addresses from which this machine would speak to another one; no packet is sent."""
    found: list[str] = []
    for family, other in ((socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((other, 9))
            found.append(str(asking.getsockname()[0]))
    return found


def test_the_address_of_an_interface_is_this_machine() -> None:
    """The address by which this machine is known to others needs a permission as loopback does."""
    for text in _towards_others():
        address, goal = ip_address(text), Destination("ok.test", 8765)
        assert is_own(address)
        for permit in ("*.test:8765", "ok.test:8765"):
            assert "machine's own" in (problem_with(address, goal, Permits.given([permit])) or "")
        for permit in (str(Destination(text, 8765)), "localhost:8765"):
            assert problem_with(address, goal, Permits.given(["ok.test:8765", permit])) is None
