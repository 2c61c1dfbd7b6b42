"""The provider name, server and model of a tier, for spans and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from artoo.telemetry import conventions as c

# Endings of host names, with the well-known values of `gen_ai.provider.name` for them.
_PROVIDERS = (
    ("openai.azure.com", "azure.ai.openai"),
    ("openai.com", "openai"),
    ("anthropic.com", "anthropic"),
    ("cohere.com", "cohere"),
    ("cohere.ai", "cohere"),
    ("deepseek.com", "deepseek"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("groq.com", "groq"),
    ("mistral.ai", "mistral_ai"),
    ("moonshot.ai", "moonshot_ai"),
    ("moonshot.cn", "moonshot_ai"),
    ("perplexity.ai", "perplexity"),
    ("x.ai", "x_ai"),
)

# The provider name of every other server whose API is like OpenAI's.
COMPATIBLE = "openai_compatible"

# The provider name of the model that runs in this process.
EMBEDDED = "llama.cpp"


@dataclass(frozen=True, slots=True)
class Peer:
    """A model and its server, as they were requested. Unknown values are empty. `local` is true if the model runs
    in this process."""

    provider: str = COMPATIBLE
    model: str = ""
    address: str = ""
    port: int = 0
    local: bool = False

    def attributes(self) -> dict[str, str | int]:
        """Return the attributes that the span of a call and its measurements have in common."""
        found: dict[str, str | int] = {c.OPERATION: c.CHAT, c.PROVIDER: self.provider}
        if self.model:
            found[c.REQUEST_MODEL] = self.model
        if self.address:
            found |= {c.SERVER_ADDRESS: self.address, c.SERVER_PORT: self.port}
        return found


Peers = Mapping[str, Peer]
"""The peers by tier (`brain`, `tool`)."""


def peer_of(base_url: str | None, model: str) -> Peer:
    """Return the peer of an endpoint. If `base_url` is None, it is the embedded model."""
    if base_url is None:
        return Peer(EMBEDDED, model, local=True)
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    ends = (name for end, name in _PROVIDERS if host == end or host.endswith(f".{end}"))
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Peer(next(ends, COMPATIBLE), model, host, port)
