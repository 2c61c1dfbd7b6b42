"""Combine each tier's endpoint from `config.yaml` and environment, with timeout, image support and key variables.

Reference: SPEC section 9.

The order of precedence is the same as in `artoo.llm.settings`: the variables `BRAIN_*` and `TOOL_*`, then the file,
then `OPENAI_*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from artoo.contracts.errors import ConfigurationError
from artoo.llm.address import normalise_base_url
from artoo.llm.settings import model_settings
from artoo.llm.wires.how import Reasoning
from artoo.runtime.config.model import Config, ModelEndpoint

TierName = Literal["brain", "tool"]
TIERS: tuple[TierName, ...] = ("brain", "tool")


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """The complete settings of an endpoint. The units are seconds for `timeout`, simultaneous calls for
    `concurrency`, and tokens for `context`.

    If `api_key` is empty, no key is sent. `context`, `images`, `wire` and `reasoning` are as configured. `source`
    says which setting named the endpoint, for messages to the user.
    """

    base_url: str
    model: str
    api_key: str = field(repr=False)
    timeout: float
    concurrency: int
    context: int | None
    source: str
    images: bool = False
    wire: str = "auto"
    reasoning: Reasoning | None = None


def endpoint(config: Config, tier: TierName, environ: Mapping[str, str]) -> EndpointSettings | None:
    """Return the endpoint of a tier. Return None if the embedded model serves the tier.

    Raises ConfigurationError if an endpoint is incomplete, which means that the model or the address is missing, or
    that the key variable is empty.
    """
    filed = {name: value for each in TIERS for name, value in _filed(config, each, environ).items()}
    settings = model_settings(environ, filed)
    chosen = settings.brain if tier == "brain" else settings.tool
    if chosen.base_url is None:
        return None
    written, source = _section(config, tier), _source(tier, filed, environ)
    try:
        address = normalise_base_url(chosen.base_url)
    except ConfigurationError as error:
        raise ConfigurationError(f"{source}: {error}") from None
    return EndpointSettings(
        base_url=address,
        model=chosen.model,
        api_key=chosen.api_key or "",
        timeout=written.timeout,
        concurrency=written.concurrency,
        context=written.context,
        source=source,
        images=written.images,
        wire=written.wire if written.wire != "auto" else chosen.wire,
        reasoning=written.reasoning,
    )


def with_model(environ: Mapping[str, str], name: str | None) -> Mapping[str, str]:
    """Return an environment in which both tiers request the model `name`. If the name is None, the environment is
    unchanged."""
    return environ if name is None else {**environ, **{f"{tier.upper()}_MODEL": name for tier in TIERS}}


def takes_images(config: Config, environ: Mapping[str, str]) -> bool:
    """Return whether the model of at least one tier is configured to accept images. Raises as `endpoint` does."""
    return any(found.images for tier in TIERS if (found := endpoint(config, tier, environ)))


def key_variables(config: Config) -> tuple[str, ...]:
    """Return the names of the environment variables in which, by the configuration, the keys of models are."""
    named = (config.models.brain.api_key_env, config.models.tool.api_key_env)
    return tuple(name for name in named if name is not None)


def _section(config: Config, tier: TierName) -> ModelEndpoint:
    return config.models.brain if tier == "brain" else config.models.tool


def _filed(config: Config, tier: TierName, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a tier in the file, under the names that `model_settings` uses. The key is read from
    its environment variable."""
    written = _section(config, tier)
    given = {f"{tier}_base_url": written.base_url, f"{tier}_model": written.model}
    if written.api_key_env is not None:
        key = environ.get(written.api_key_env, "").strip()
        if not key:
            raise ConfigurationError(
                f"models.{tier}.api_key_env names the environment variable {written.api_key_env}, which is not set"
            )
        given[f"{tier}_api_key"] = key
    return {name: value for name, value in given.items() if value is not None}


def _source(tier: TierName, filed: Mapping[str, str], environ: Mapping[str, str]) -> str:
    prefix = tier.upper()
    if any(environ.get(f"{prefix}_{part}", "").strip() for part in ("BASE_URL", "MODEL")):
        return f"{prefix}_*"
    if {f"{tier}_base_url", f"{tier}_model"} & filed.keys():
        return f"models.{tier}"
    return "ANTHROPIC_*" if environ.get("ANTHROPIC_MODEL") and not environ.get("OPENAI_MODEL") else "OPENAI_*"
