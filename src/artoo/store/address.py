"""Parse the `store` address (PostgreSQL URL), with password variables and required TLS.

Reference: SPEC section 13.

The address is a libpq URL. It must not contain a password, because addresses are shown in messages, stored in the
settings and visible in process lists.
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
"""Environment variables for the password. The first one that is set is used. libpq also reads ~/.pgpass."""

_SECRET = ("password", "sslpassword")

EXAMPLE = "postgresql://artoo@db.example.org/artoo"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A checked address, which has no password. The server's certificate is verified, unless the server is local or
    `sslmode` says otherwise."""

    url: str
    hosts: tuple[str, ...]
    ssl_mode: str | None
    ssl_root_certificate: str | None
    service: str | None = None

    def is_local(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return whether the connection stays on this machine, because it uses a socket or the loopback interface.

        libpq takes the missing parts of the address from the environment. If a service file is used, the result is
        False, because its content is unknown.
        """
        if self.service or environ.get("PGSERVICE"):
            return False
        named = self.hosts or _listed(environ, "PGHOST", "PGHOSTADDR")
        return all(map(_is_local, named))

    def settings(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the settings for libpq that are needed besides the URL: those for TLS, and the password if the
        environment has one.

        For remote stores the default is `sslmode=verify-full`, with ~/.postgresql/root.crt if that file exists,
        otherwise with the system's certificate authorities.
        """
        given: dict[str, str] = {}
        if not self.is_local(environ):
            given["sslmode"] = self.ssl_mode or "verify-full"
            own = self.ssl_root_certificate or environ.get("PGSSLROOTCERT")
            # libpq accepts the system's certificate authorities only with verify-full.
            if given["sslmode"] == "verify-full" and not own and not own_root_certificate().exists():
                given["sslrootcert"] = "system"
        password = next((environ[name] for name in PASSWORD_VARIABLES if environ.get(name)), None)
        if password is not None:
            given["password"] = password
        return given

    def __str__(self) -> str:
        return self.url


def parse(url: str) -> StoreAddress:
    """Parse an address. Raises ConfigurationError if the address has another scheme, a password, or no database.

    Error messages do not show the refused address, because any part of it may belong to a password that was not
    escaped.
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
    # If a password contains "/", "?" or "#" unescaped, the network location ends there, so the "@" is in a later
    # part.
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
    """Return the hosts that a query or the environment names. In a query, the directory of a socket is given in
    this way."""
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
    """Return the path of the file in which libpq looks for the user's certificate authorities."""
    return Path("~/.postgresql/root.crt").expanduser()


def _wrong(what: str) -> ConfigurationError:
    return ConfigurationError(f"The store's address {what}; write it like {EXAMPLE}")
