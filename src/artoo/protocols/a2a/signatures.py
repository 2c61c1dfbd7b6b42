"""Whether a foreign agent's card is signed with a key that the operator trusts.

The address that a card names for its keys is never asked: whoever forges a card names keys of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from a2a.types import AgentCard
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from jwt import PyJWK, PyJWKSet
from jwt.exceptions import PyJWKSetError, PyJWTError

from artoo.contracts.errors import ForeignRefused

ALGORITHMS = ("ES256", "ES384", "ES512", "EdDSA", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
"""Of public keys only: with a shared secret a public key would be one."""
_LARGEST = 1 << 20
_PEM = "-----BEGIN PUBLIC KEY-----"

Find = Callable[[str | None, str | None], PyJWK | str]


def check_signature(card: AgentCard, name: str, keys: str) -> None:
    """Raises ForeignRefused unless the card is signed with one of the keys in this file, a JWK set or a PEM."""
    try:
        find = _finding(Path(keys).expanduser())
    except (OSError, ValueError, PyJWTError) as error:
        raise ForeignRefused(f"the keys of {name} in {keys} cannot be read: {error}") from error
    try:
        create_signature_verifier(find, list(ALGORITHMS))(card)
    except SignatureVerificationError as error:
        raise ForeignRefused(f"the card of {name} is not signed with a key of {keys}: {error}") from error


def _finding(file: Path) -> Find:
    """What gives the key of a signature, by its name. Raises OSError, ValueError, PyJWTError."""
    if file.stat().st_size > _LARGEST:
        raise ValueError(f"it is larger than {_LARGEST:,} bytes")
    text = file.read_text(encoding="utf-8")
    if text.lstrip().startswith(_PEM):
        return lambda _kid, _jku: text
    known = PyJWKSet.from_dict(json.loads(text)).keys

    def found(kid: str | None, _jku: str | None) -> PyJWK:
        for key in known:
            if key.key_id == kid or (len(known) == 1 and key.key_id is None):
                return key
        raise PyJWKSetError(f"there is no key {kid!r}")

    return found
