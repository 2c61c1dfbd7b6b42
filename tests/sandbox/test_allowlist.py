"""One host has one form, a permission covers what it says, and this machine's own addresses are known."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proxy_world import hello, in_records

import artoo
from artoo.contracts.errors import SandboxError
from artoo.sandbox.network.allowlist import (
    Destination,
    NotAHost,
    Permit,
    Permits,
    destination,
    final_address,
    is_own,
    plain_host,
    problem_with,
)
from artoo.sandbox.network.command_proxy import proxy_environment
from artoo.sandbox.network.tls_client_hello import ClientHello, NotAClientHello, read_client_hello


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("PyPI.org", "pypi.org"),
        ("pypi.org.", "pypi.org"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[2001:DB8::0:1]", "2001:db8::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_hosts_have_one_form(text: str, plain: str) -> None:
    """Small letters, no last dot, no brackets; an address dressed as another is what it is."""
    assert plain_host(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a b.org",
            "a\0.org",
            "x" * 64 + ".org",
            "a." * 130 + "b",
            "a..b",
            "-a.org",
            "user@a.org",
            "büch.example",
        ),
        *("127.1", "0x7f.1", "017.0.0.1", "256.1.1.1", "2130706433", "1.2.3.4.5", "a.1"),
        *("[::1", "::1]", "[::1]x", "fe80::1%eth0", "::g"),
    ],
)
def test_what_is_no_plain_host_is_refused(text: str) -> None:
    """What could be read in two ways is not read at all."""
    with pytest.raises(NotAHost):
        plain_host(text)


@settings(deadline=None)
@given(st.ip_addresses())
def test_addresses_keep_their_meaning(address: IPv4Address | IPv6Address) -> None:
    """The plain form of an address is that address, or the IPv4 address that it stands for."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    plain = plain_host(str(address).partition("%")[0])
    assert ip_address(plain) == (mapped or ip_address(str(address).partition("%")[0]))
    assert plain_host(plain) == plain


@settings(deadline=None)
@given(st.text(max_size=30))
def test_plain_forms_are_stable(text: str) -> None:
    """Whatever is taken for a host has a form that does not change when it is read again."""
    try:
        plain = plain_host(text)
    except NotAHost:
        return
    assert plain_host(plain) == plain
    assert destination(str(Destination(plain, 443))) == Destination(plain, 443)


@pytest.mark.parametrize(
    ("permit", "goal", "covered"),
    [
        ("pypi.org", "pypi.org:443", True),
        ("pypi.org", "pypi.org:8080", False),
        ("pypi.org:8080", "pypi.org:8080", True),
        ("pypi.org:8080", "pypi.org:443", False),
        ("*.pypi.org", "files.pypi.org:443", True),
        ("*.pypi.org", "pypi.org:443", False),
        ("*.pypi.org", "evilpypi.org:443", False),
        ("*.pypi.org:8443", "files.pypi.org:8443", True),
        ("pypi.org", "files.pypi.org:443", False),
        ("[::1]:8080", "[::1]:8080", True),
        ("10.0.0.1", "[::ffff:10.0.0.1]:443", True),
    ],
)
def test_what_a_permission_covers(permit: str, goal: str, covered: bool) -> None:
    """A host means https and http; a port means that port; a wildcard means what is below."""
    assert Permit.parse(permit).covers(destination(goal)) is covered


@pytest.mark.parametrize(
    "text", ["*", "*.", "*.10.0.0.1", "a*.org", "*.*.org", "pypi.org:", "pypi.org:x", "pypi.org:0"]
)
def test_permissions_that_say_nothing(text: str) -> None:
    """A permission that cannot be read is none, and the error names it."""
    with pytest.raises(SandboxError, match=r"name hosts as in"):
        Permits.given([text])


@pytest.mark.parametrize(
    ("address", "end"),
    [
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("::1.2.3.4", "1.2.3.4"),
        ("64:ff9b::102:304", "1.2.3.4"),
        ("2002:102:304::1", "1.2.3.4"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_the_address_in_the_end(address: str, end: str) -> None:
    """An IPv6 address that holds an IPv4 address is judged by that."""
    assert str(final_address(ip_address(address))) == end


@settings(deadline=None)
@given(st.integers(1, 600))
def test_a_hello_is_read_whole_or_not_yet(size: int) -> None:
    """However it is cut into records and pieces, a hello has one name, and a part of it none."""
    message = in_records(hello("ok.test"), size)
    assert read_client_hello(message) == ClientHello("ok.test", is_encrypted=False)
    assert all(read_client_hello(message[:length]) is None for length in range(0, len(message), 97))


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_no_bytes_break_the_reader(junk: bytes, at: int) -> None:
    """Whatever comes, it is a hello, the beginning of one, or refused."""
    message = hello("ok.test")
    for data in (junk, message[:at] + junk + message[at:], b"\x16\x03\x01" + len(junk).to_bytes(2, "big") + junk):
        try:
            found = read_client_hello(data)
        except NotAClientHello:
            continue
        assert found is None or isinstance(found.name, str)


def test_what_programs_are_told() -> None:
    """Proxies in both cases of letters; this machine's own names only while no permission means them."""
    told = proxy_environment(Permits.given(["pypi.org:443"]), 43128)
    assert told["HTTPS_PROXY"] == told["https_proxy"] == told["all_proxy"] == "http://127.0.0.1:43128"
    assert told["no_proxy"] == told["NO_PROXY"] == "localhost,127.0.0.1,::1"
    assert proxy_environment(Permits.given(["127.0.0.1:8080"]), 43128)["no_proxy"] == "localhost,::1"


# --- this machine's own addresses, asked of the real kernel -------------------------------------------------------

_BESIDE = """
import sys
from contextlib import suppress
from ipaddress import ip_address
from artoo.sandbox.network.allowlist import is_own
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
