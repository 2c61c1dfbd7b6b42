"""Why TLS with a server comes to nothing: libpq says the same of an expired certificate and of a stranger's."""

from __future__ import annotations

import os
import socket
import ssl
import struct
from collections.abc import Mapping
from itertools import zip_longest

from artoo.store.address import StoreAddress, own_root_certificate

SECONDS = 3.0
"""For each answer of a host."""

MOST_HOSTS = 5

_SSL_REQUEST = struct.pack("!ii", 8, 80_877_103)
"""The first message of a client that wants TLS (PostgreSQL's protocol, message formats: SSLRequest)."""

_ENDED, _OTHER_NAME, _STRANGERS = 10, 62, (18, 19, 20, 21)
"""OpenSSL's X509_V_ERR_*: the certificate has expired; hostname mismatch; issuers that are not trusted."""


def refusal(address: StoreAddress, environ: Mapping[str, str] = os.environ) -> str:
    """What is wrong with TLS at the store's hosts and what to do; empty: it is not demanded, or nothing is found.

    Blocks, a few seconds for each host that does not answer.
    """
    settings = address.settings(environ)
    if settings.get("sslmode") not in ("verify-full", "verify-ca"):
        return ""
    from psycopg.conninfo import conninfo_to_dict

    known = conninfo_to_dict(address.url)
    ports = str(known.get("port") or environ.get("PGPORT") or "5432").split(",")
    names = str(known.get("host") or environ.get("PGHOST") or "").split(",")
    places = str(known.get("hostaddr") or environ.get("PGHOSTADDR") or "").split(",")
    root = settings.get("sslrootcert") or address.ssl_root_certificate or environ.get("PGSSLROOTCERT")
    authorities = None if root == "system" else root or str(own_root_certificate())
    for name, place, port in list(zip_longest(names, places, ports, fillvalue=""))[:MOST_HOSTS]:
        found = _refused(name or "", place or name or "", int(port or ports[0]), authorities, settings["sslmode"])
        if found:
            return found
    return ""


def _refused(name: str, place: str, port: int, authorities: str | None, mode: str) -> str:
    try:
        context = ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        return f"The certificates of authorities in {authorities} cannot be read: {error}."
    # From Python 3.13 on it is stricter than libpq is with chains, which is what the connection is made with.
    context.verify_flags &= ~(ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    context.check_hostname = mode == "verify-full"
    try:
        with socket.create_connection((place, port), SECONDS) as connection:
            connection.sendall(_SSL_REQUEST)
            if connection.recv(1) != b"S":
                return (
                    f"The server at {name} does not speak TLS: switch it on there (`ssl = on`, with a certificate)."
                    " `?sslmode=disable` in the address does without; then whoever is in between reads all."
                )
            with context.wrap_socket(connection, server_hostname=name):
                return ""
    except ssl.SSLCertVerificationError as error:
        return _advice(name, error, authorities or "the system's store")
    except (OSError, ValueError):
        return ""  # what libpq said of it stands


def _advice(name: str, error: ssl.SSLCertVerificationError, authorities: str) -> str:
    if error.verify_code == _ENDED:
        return f"The certificate of {name} has expired, or a clock is wrong: renew it on the server."
    if error.verify_code == _OTHER_NAME:
        return (
            f"The certificate is not {name}'s: use a name in the address that it has, or give the server one that"
            " has this name (subjectAltName)."
        )
    if error.verify_code in _STRANGERS:
        return (
            f"The certificate of {name} is of an authority that is not in {authorities}: put that authority's"
            f" certificate into {own_root_certificate()}, or name its file in the address (?sslrootcert=FILE)."
        )
    return f"The certificate of {name} is refused: {error.verify_message}."
