"""Where the shared store is, and how safely it is reached (SPEC section 13).

The address is what libpq takes as a URL. A password never stands in it: an address is shown in messages, kept in
the file of settings and seen by everybody who lists processes.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from artoo.contracts.errors import ConfigurationError

SCHEMES = ("postgresql", "postgres")
PASSWORD_VARIABLES = ("ARTOO_STORE_PASSWORD", "PGPASSWORD")
"""Where a password may be given, the first that is set; libpq looks into ~/.pgpass on its own."""

EXAMPLE = "postgresql://artoo@db.example.org/artoo"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A checked address: no password, and a verified connection unless it is local or says otherwise."""

    url: str
    hosts: tuple[str, ...]
    ssl_mode: str | None
    ssl_root_certificate: str | None

    @property
    def local(self) -> bool:
        """Whether the connection never leaves this machine: a socket, or the loopback."""
        return all(map(_is_local, self.hosts)) or not self.hosts

    def settings(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """What libpq needs beside the URL: TLS, and the password where the environment has one.

        Not local: `sslmode=verify-full`, against ~/.postgresql/root.crt where it is, else the system's authorities.
        """
        given: dict[str, str] = {}
        if not self.local:
            given["sslmode"] = self.ssl_mode or "verify-full"
            own = self.ssl_root_certificate or environ.get("PGSSLROOTCERT")
            # libpq takes the system's authorities for verify-full only.
            if given["sslmode"] == "verify-full" and not own and not _own_root_certificate().exists():
                given["sslrootcert"] = "system"
        password = next((environ[name] for name in PASSWORD_VARIABLES if environ.get(name)), None)
        if password is not None:
            given["password"] = password
        return given

    def __str__(self) -> str:
        return self.url


def parse(url: str) -> StoreAddress:
    """Reads an address. Raises ConfigurationError: another scheme, a password in it, no database named."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _wrong(f"is no address: {error}") from error
    if parts.scheme not in SCHEMES:
        raise _wrong(f"is {_shown(url)!r}, but must be a PostgreSQL address")
    user, _, places = parts.netloc.rpartition("@")
    query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if ":" in user or "password" in query:
        raise ConfigurationError(
            "The store's address must not hold a password: it is shown in messages and lists of processes. Leave it"
            f" out, and set {PASSWORD_VARIABLES[0]} (or PGPASSWORD), or let ~/.pgpass hold it."
        )
    if not (parts.path.strip("/") or query.get("dbname") or query.get("service")):
        raise _wrong("names no database")
    hosts = tuple(_host(place) for place in places.split(",") if place) or _named(query)
    return StoreAddress(url, hosts, query.get("sslmode"), query.get("sslrootcert"))


def _named(query: Mapping[str, str]) -> tuple[str, ...]:
    """Hosts that the query names, as it does for a socket's directory."""
    given = query.get("host") or query.get("hostaddr") or ""
    return tuple(given.split(",")) if given else ()


def _host(place: str) -> str:
    """The host of `host:port`, `[address]:port` or an escaped directory."""
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return unquote(place.partition(":")[0])


def _is_local(host: str) -> bool:
    if host in ("", "localhost") or host.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _own_root_certificate() -> Path:
    return Path("~/.postgresql/root.crt").expanduser()


def _shown(url: str) -> str:
    """An address of another kind without what may be a password."""
    head, at, tail = url.rpartition("@")
    return f"{head.partition('//')[0]}//…@{tail}" if at else url


def _wrong(what: str) -> ConfigurationError:
    return ConfigurationError(f"The store's address {what}; write it like {EXAMPLE}")
