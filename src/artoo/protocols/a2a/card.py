"""Agent cards with the URL paths of JSON-RPC and REST, and the ES256 signing key `a2a-key.pem`.

The cards are signed with the key of this home.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0, TransportProtocol
from a2a.utils.signing import ProtectedHeader, create_agent_card_signer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from artoo.agents.identity.identity import Identity
from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import made_once
from artoo.protocols.a2a.asked import MODES
from artoo.runtime.task.task_header import own_version

ALGORITHM = "ES256"
KEY_FILE = "a2a-key.pem"
RPC, REST = "/rpc", "/v1"
KEYS_PATH = "/.well-known/jwks.json"
_SCHEME = "bearer"
_TEAM = (
    "Does tasks in plain words on its operator's machine, checks what it did, and answers when the policy of its"
    " operator lets the result pass."
)


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs cards with ES256. `keys` is the public key as a JWK set, `pem` the private key, and `name` the id of
    the key."""

    pem: bytes
    name: str
    keys: dict[str, object]

    def sign(self, card: AgentCard, url: str) -> AgentCard:
        """Sign the card. `url` is the address of this server, at which the public keys are published."""
        header = ProtectedHeader(kid=self.name, alg=ALGORITHM, jku=url + KEYS_PATH, typ="JOSE")
        return create_agent_card_signer(self.pem, header)(card)


def own_signer(home: Path) -> Signer:
    """Load the key from artoo's home. If there is none, create one that only its owner can read. Raises
    ConfigurationError."""
    file = home / KEY_FILE
    pem = made_once(file, _new_key)
    try:
        key = serialization.load_pem_private_key(pem, None)
    except ValueError as error:
        raise ConfigurationError(f"{file} is no key; remove it, and a new one is made") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or file.stat().st_mode & 0o077:
        raise ConfigurationError(f"{file} is no key for {ALGORITHM}, or open to others; remove it")
    public: dict[str, object] = json.loads(ECAlgorithm.to_jwk(key.public_key()))
    name = str(public["x"])[:16]
    return Signer(pem, name, {"keys": [{**public, "kid": name, "alg": ALGORITHM, "use": "sig"}]})


def team_card(url: str) -> AgentCard:
    """Build the card of the team."""
    skill = AgentSkill(id="task", name="Tasks", description=_TEAM, tags=["tasks"], examples=[])
    return _card("artoo", _TEAM, url, [skill])


def agent_card(identity: Identity, url: str) -> AgentCard:
    """Build the card of one agent of the team. Its persona is not part of the card."""
    described = f"{identity.name} of this team: {identity.role}"
    skills = [
        AgentSkill(id=f"skill-{number}", name=name, description=name, tags=[identity.role])
        for number, name in enumerate(identity.skills or (identity.role,), 1)
    ]
    return _card(identity.name, described, url, skills)


def _card(name: str, described: str, url: str, skills: list[AgentSkill]) -> AgentCard:
    bindings = (
        (url + RPC, TransportProtocol.JSONRPC, PROTOCOL_VERSION_1_0),
        (url + REST, TransportProtocol.HTTP_JSON, PROTOCOL_VERSION_1_0),
        (url + RPC, TransportProtocol.JSONRPC, PROTOCOL_VERSION_0_3),
    )
    token = HTTPAuthSecurityScheme(scheme="Bearer", description="a token that the operator gives")
    return AgentCard(
        name=name,
        description=described,
        version=own_version(),
        supported_interfaces=[
            AgentInterface(url=at, protocol_binding=binding.value, protocol_version=version)
            for at, binding, version in bindings
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        security_schemes={_SCHEME: SecurityScheme(http_auth_security_scheme=token)},
        security_requirements=[SecurityRequirement(schemes={_SCHEME: StringList()})],
        default_input_modes=list(MODES),
        default_output_modes=list(MODES),
        skills=skills,
    )


def _new_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
