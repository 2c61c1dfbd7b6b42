"""An authority and what it says of servers, made for one run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Authority:
    """Signs certificates of servers."""

    def __init__(self, name: str) -> None:
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def certificate(self) -> bytes:
        """Its own, as PEM: what a client trusts."""
        built = self._built(self._name, self._key.public_key(), 365).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        return built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def server(self, host: str, days: int = 30) -> tuple[bytes, bytes]:
        """A certificate of `host` and its key, as PEM. It ends in `days`, which may be past."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        built = self._built(name, key.public_key(), days).add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False
        )
        signed = built.sign(self._key, hashes.SHA256())
        own = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return signed.public_bytes(serialization.Encoding.PEM), own

    def _built(self, name: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 60 * DAY)
            .not_valid_after(now + days * DAY)
        )
