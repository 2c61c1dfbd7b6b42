"""Parse the address of the shared store, and require a safe connection to it (SPEC section 13).

The address is a URL of libpq. It never contains a password: an address is shown in messages, kept in the settings
and seen by everyone who lists processes.
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

_SECRET = ("password", "sslpassword")

EXAMPLE = "postgresql://artoo@db.example.org/artoo"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A checked address: no password, and a verified connection unless it is local or says otherwise."""

    url: str
    hosts: tuple[str, ...]
    ssl_mode: str | None
    ssl_root_certificate: str | None
    service: str | None = None

    def is_local(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Check whether the connection never leaves this machine: a socket, or the loopback.

        The environment fills the gaps of the address for libpq; the content of a service file is not known here.
        """
        if self.service or environ.get("PGSERVICE"):
            return False
        named = self.hosts or _listed(environ, "PGHOST", "PGHOSTADDR")
        return all(map(_is_local, named))

    def settings(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the settings for libpq besides the URL: TLS, and the password where the environment has one.

        Not local: `sslmode=verify-full`, against ~/.postgresql/root.crt where it is, else the system's authorities.
        """
        given: dict[str, str] = {}
        if not self.is_local(environ):
            given["sslmode"] = self.ssl_mode or "verify-full"
            own = self.ssl_root_certificate or environ.get("PGSSLROOTCERT")
            # libpq takes the system's authorities for verify-full only.
            if given["sslmode"] == "verify-full" and not own and not own_root_certificate().exists():
                given["sslrootcert"] = "system"
        password = next((environ[name] for name in PASSWORD_VARIABLES if environ.get(name)), None)
        if password is not None:
            given["password"] = password
        return given

    def __str__(self) -> str:
        return self.url


def parse(url: str) -> StoreAddress:
    """Parse an address. Raises ConfigurationError: another scheme, a password in it, no database named.

    No error shows an address that was refused, for anything in it may be a password that was not escaped.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        # The error's text is not shown, because it may contain a password.
        raise _wrong("is no address") from None
    if parts.scheme not in SCHEMES:
        raise _wrong("must be a PostgreSQL address")
    user, at, places = parts.netloc.rpartition("@")
    query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    # A password with a "/", "?" or "#" of its own ends what is read as user and hosts, and its "@" comes later.
    cut = not at and ":" in places and "@" in f"{parts.path}{parts.query}{parts.fragment}"
    if ":" in user or cut or any(name in query for name in _SECRET):
        raise ConfigurationError(
            "The store's address is shown in messages and lists of processes, and must not hold a password. Leave"
            f" it out, and set {PASSWORD_VARIABLES[0]} (or PGPASSWORD), or let ~/.pgpass hold it. (An @ of another"
            " part is written %40.)"
        )
    if not (parts.path.strip("/") or query.get("dbname") or query.get("service")):
        raise _wrong("names no database")
    hosts = tuple(_host(place) for place in places.split(",") if place) or _listed(query, "host")
    hosts += _listed(query, "hostaddr")
    return StoreAddress(url, hosts, query.get("sslmode"), query.get("sslrootcert"), query.get("service"))


def _listed(given: Mapping[str, str], *names: str) -> tuple[str, ...]:
    """Return the hosts that a query or an environment names; the query does so for a socket's directory."""
    return tuple(host for name in names for host in given.get(name, "").split(",") if host)


def _host(place: str) -> str:
    """Return the host of `host:port`, `[address]:port` or an escaped directory."""
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


def own_root_certificate() -> Path:
    """Return the file in which libpq looks for the user's own authorities."""
    return Path("~/.postgresql/root.crt").expanduser()


def _wrong(what: str) -> ConfigurationError:
    return ConfigurationError(f"The store's address {what}; write it like {EXAMPLE}")
