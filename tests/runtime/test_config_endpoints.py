"""Which endpoint serves which tier."""

from __future__ import annotations

import pytest

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.endpoints import EndpointSettings, endpoint
from artoo.runtime.config.model import Config

OPENAI = {"OPENAI_BASE_URL": "http://shared/v1/", "OPENAI_MODEL": "shared", "OPENAI_API_KEY": "shared-key"}


def config(**models: object) -> Config:
    """A configuration with these `models`."""
    return Config.model_validate({"models": models})


def parts(settings: EndpointSettings | None) -> tuple[str, str, str] | None:
    """Address, model and key."""
    return (settings.base_url, settings.model, settings.api_key) if settings is not None else None


def test_a_tiers_own_variables_stand_over_everything() -> None:
    """`BRAIN_*` over the file over `OPENAI_*`, each part by itself; the file's other numbers hold."""
    filed = config(brain={"base_url": "http://file/v1", "model": "file", "timeout": 7})
    found = endpoint(filed, "brain", {**OPENAI, "BRAIN_MODEL": "own"})
    assert parts(found) == ("http://file/v1", "own", "")
    assert found is not None
    assert (found.timeout, found.source) == (7, "BRAIN_*")
    both = endpoint(filed, "brain", {**OPENAI, "BRAIN_MODEL": "own", "BRAIN_BASE_URL": "http://own/v1"})
    assert parts(both) == ("http://own/v1", "own", "")
    assert parts(endpoint(filed, "tool", OPENAI)) == ("http://shared/v1", "shared", "shared-key")


def test_a_key_is_not_sent_to_another_server() -> None:
    """The file's address gets the key that the file names, never the one of `OPENAI_API_KEY` by chance."""
    filed = {"base_url": "http://file/v1", "model": "file"}
    found = endpoint(config(brain=filed), "brain", OPENAI)
    assert parts(found) == ("http://file/v1", "file", "")
    assert found is not None
    assert found.source == "models.brain"
    named = config(brain={**filed, "api_key_env": "MY_KEY"})
    assert parts(endpoint(named, "brain", {**OPENAI, "MY_KEY": "mine"})) == ("http://file/v1", "file", "mine")


def test_a_tier_can_stay_on_this_machine() -> None:
    """`embedded` as a base URL, in the file or the environment, keeps a tier in this process."""
    assert endpoint(config(tool={"base_url": "embedded"}), "tool", OPENAI) is None
    assert endpoint(Config(), "tool", {**OPENAI, "TOOL_BASE_URL": "embedded"}) is None


@pytest.mark.parametrize(
    ("given", "said"), [("127.0.0.1:8080", "as in http://127.0.0.1:8080"), ("ftp://x", "write it like")]
)
def test_an_address_that_is_none_is_a_mistake_with_its_place(given: str, said: str) -> None:
    """Before anything is started, with who named it and how it should be."""
    with pytest.raises(ConfigurationError, match=rf"^BRAIN_\*: the base URL '{given}' is no .*{said}"):
        endpoint(Config(), "brain", {"BRAIN_BASE_URL": given, "BRAIN_MODEL": "m"})


@pytest.mark.parametrize(
    ("models", "environ", "said"),
    [
        ({}, {"BRAIN_BASE_URL": "http://x"}, "http://x is set but no model"),
        ({"brain": {"base_url": "http://x"}}, {}, "http://x is set but no model"),
        ({}, {"BRAIN_API_KEY": "key"}, "is set but no model"),
        ({"brain": {"model": "m"}}, {}, "BRAIN_MODEL is 'm' but no server is set"),
        ({"brain": {"model": "m", "api_key_env": "MY_KEY"}}, {}, "MY_KEY, which is not set"),
    ],
)
def test_half_a_setting_is_a_mistake(models: dict[str, object], environ: dict[str, str], said: str) -> None:
    """What is missing is named before anything is sent."""
    with pytest.raises(ConfigurationError) as caught:
        endpoint(config(**models), "brain", environ)
    assert said in str(caught.value)
