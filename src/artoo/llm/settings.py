"""Parse `BRAIN_*`, `TOOL_*` and `OPENAI_*` variables to endpoints, with the default URLs of OpenAI and Anthropic.

The functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from artoo.contracts.errors import ConfigurationError
from artoo.llm.wires.how import Reasoning
from artoo.ports.model import Tier

OPENAI_BASE_URL = "https://api.openai.com/v1"
ANTHROPIC_BASE_URL = "https://api.anthropic.com/v1"
# The base URL that stands for the model inside this process.
EMBEDDED = "embedded"

_NAMES = ("API_KEY", "BASE_URL", "MODEL")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and the model of one server. If `base_url` is None, it is the embedded model with the name
    `model` ("" means the default).

    `wire` and `reasoning` have the same meaning as in EndpointModel.
    """

    base_url: str | None
    model: str = ""
    api_key: str | None = field(default=None, repr=False)
    wire: str = "auto"
    reasoning: Reasoning | None = None


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The endpoints of both tiers. The planner and the meta-validator use the same tier, so neither is weaker than
    the other."""

    brain: Endpoint
    tool: Endpoint

    def of(self, tier: Tier) -> Endpoint:
        """Return the endpoint of a tier."""
        return self.brain if tier is Tier.BRAIN else self.tool


def model_settings(environment: Mapping[str, str], configuration: Mapping[str, str] | None = None) -> ModelSettings:
    """Return the endpoints that the variables `BRAIN_*`, `TOOL_*`, `OPENAI_*` and `ANTHROPIC_*` describe.

    Each group has `_API_KEY`, `_BASE_URL` and `_MODEL`. `configuration` contains the values of the configuration
    file under the same names in lower case (`brain_base_url`). The environment overrides them. A value that a tier
    lacks is taken from OPENAI_*, or from ANTHROPIC_* if OPENAI_* names no server. A tier without any value uses the
    embedded model. A key alone does not count as a value. If a tier has a base URL of its own, it does not use the
    key of another server. It uses the key if both are the same server. Raises ConfigurationError for settings that
    cannot work together.
    """
    values = {
        f"{prefix}_{name}": _value(environment, configuration or {}, f"{prefix}_{name}")
        for prefix in ("BRAIN", "TOOL", "OPENAI", "ANTHROPIC")
        for name in _NAMES
    }
    return ModelSettings(brain=_endpoint("BRAIN", values), tool=_endpoint("TOOL", values))


def _value(environment: Mapping[str, str], configuration: Mapping[str, str], name: str) -> str:
    return (environment.get(name) or configuration.get(name.lower()) or "").strip()


def _vendor(prefix: str, values: Mapping[str, str]) -> tuple[str, str]:
    """Choose the vendor whose variables provide the values that a tier lacks. Return also the vendor's address."""
    openai = values["OPENAI_BASE_URL"] or (values["OPENAI_API_KEY"] and values["OPENAI_MODEL"])
    anthropic = values["ANTHROPIC_API_KEY"] and (values["ANTHROPIC_MODEL"] or values[f"{prefix}_MODEL"])
    if anthropic and not openai and not (values["OPENAI_API_KEY"] and values[f"{prefix}_MODEL"]):
        return "ANTHROPIC", _versioned(values["ANTHROPIC_BASE_URL"] or ANTHROPIC_BASE_URL)
    return "OPENAI", OPENAI_BASE_URL


def _versioned(url: str) -> str:
    """Append the version to the base URL of Anthropic, because its users write the URL without it."""
    url = url.rstrip("/")
    return url if url.endswith("/v1") else f"{url}/v1"


def _endpoint(prefix: str, values: Mapping[str, str]) -> Endpoint:
    vendor, address = _vendor(prefix, values)
    own_url, shared_url = values[f"{prefix}_BASE_URL"], values["OPENAI_BASE_URL"]
    own_key, shared_key = values[f"{prefix}_API_KEY"], values[f"{vendor}_API_KEY"]
    model = values[f"{prefix}_MODEL"] or values[f"{vendor}_MODEL"]
    # Many users have set OPENAI_API_KEY for other programs, so it selects OpenAI's server only together with a
    # model.
    url = own_url or shared_url or (address if own_key or (shared_key and model) else "")
    if url.lower() == EMBEDDED:
        # OPENAI_MODEL names a model at OPENAI_BASE_URL. It therefore applies here only if that is "embedded" too.
        return Endpoint(None, values[f"{prefix}_MODEL"] or ("" if own_url else model))
    if not url:
        return _without_server(prefix, values, model)
    same_server = not own_url or _same(own_url, shared_url or (address if shared_key else ""))
    key = own_key or (shared_key if same_server else "")
    if url in (OPENAI_BASE_URL, ANTHROPIC_BASE_URL) and not key:
        raise ConfigurationError(
            f"{prefix}_BASE_URL is {url}, which needs a key; set {prefix}_API_KEY or {vendor}_API_KEY"
        )
    if not model:
        raise ConfigurationError(
            f"{prefix}: {url} is set but no model; set {prefix}_MODEL or OPENAI_MODEL to one that it serves"
        )
    for name, value in (("API_KEY", key), ("MODEL", model)):
        if not value.isprintable():  # the HTTP client refuses such a header, so no request can be sent with it
            raise ConfigurationError(
                f"{prefix}_{name} or OPENAI_{name} holds a line end, or another character that cannot be sent; "
                "set it to one line of text"
            )
    named_by_vendor = vendor == "ANTHROPIC" and not own_url
    return Endpoint(url, model, key or None, wire="messages" if named_by_vendor else "auto")


def _without_server(prefix: str, values: Mapping[str, str], model: str) -> Endpoint:
    if model:
        name = f"{prefix}_MODEL" if values[f"{prefix}_MODEL"] else "OPENAI_MODEL"
        raise ConfigurationError(
            f"{name} is {model!r} but no server is set; set {prefix}_BASE_URL (local servers need no key), "
            f"or OPENAI_API_KEY for OpenAI, or unset {name} to use the embedded model"
        )
    return Endpoint(None)


def _same(one: str, other: str) -> bool:
    return one.rstrip("/").lower() == other.rstrip("/").lower()
