from __future__ import annotations

import pytest

from artoo.contracts.errors import ConfigurationError
from artoo.llm.settings import Endpoint, model_settings

OPENAI = "https://api.openai.com/v1"
LOCAL = "http://127.0.0.1:11434/v1"


def test_nothing_configured_is_the_embedded_model():
    """Without any setting both tiers run in this process."""
    settings = model_settings({})
    assert settings.brain == settings.tool == Endpoint(None)
    assert settings.brain.base_url is None


def test_tiers_take_what_they_lack_from_openai():
    """BRAIN_* and TOOL_* win one by one; what they leave open comes from OPENAI_*."""
    settings = model_settings(
        {
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": LOCAL,
            "OPENAI_MODEL": "small",
            "BRAIN_MODEL": "large",
            "TOOL_API_KEY": "t",
        }
    )
    assert settings.brain == Endpoint(LOCAL, "large", "k")
    assert settings.tool == Endpoint(LOCAL, "small", "t")


def test_embedded_can_be_asked_for():
    """TOOL_BASE_URL=embedded keeps one tier in this process while OPENAI_* serve the other."""
    shared = {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "gpt", "TOOL_BASE_URL": "embedded"}
    assert model_settings(shared).tool == Endpoint(None)
    assert model_settings({**shared, "TOOL_MODEL": "my.gguf"}).tool == Endpoint(None, "my.gguf")
    assert model_settings({"OPENAI_BASE_URL": "embedded", "OPENAI_MODEL": "my.gguf"}).brain == Endpoint(
        None, "my.gguf"
    )


def test_a_key_does_not_leak_to_another_server():
    """The shared key goes to the shared server only."""
    settings = model_settings(
        {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "gpt", "TOOL_BASE_URL": LOCAL, "BRAIN_BASE_URL": OPENAI + "/"}
    )
    assert settings.tool.api_key is None
    assert settings.brain.api_key == "k"


def test_environment_wins_over_the_file():
    """Values of the configuration file hold where the environment says nothing."""
    configuration = {"openai_base_url": LOCAL, "openai_model": "file", "brain_model": "deep"}
    settings = model_settings({"OPENAI_MODEL": "env"}, configuration)
    assert settings.tool == Endpoint(LOCAL, "env")
    assert settings.brain == Endpoint(LOCAL, "deep")


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"OPENAI_MODEL": "m"}, "OPENAI_MODEL"),
        ({"BRAIN_MODEL": "m"}, "BRAIN_MODEL"),
        ({"OPENAI_BASE_URL": LOCAL}, "OPENAI_MODEL"),
        ({"TOOL_BASE_URL": LOCAL}, "TOOL_MODEL"),
        ({"TOOL_API_KEY": "secret"}, "TOOL_MODEL"),
        ({"OPENAI_BASE_URL": OPENAI, "OPENAI_MODEL": "m"}, "API_KEY"),
        ({"OPENAI_BASE_URL": LOCAL, "OPENAI_MODEL": "m", "OPENAI_API_KEY": "secret\nmore"}, "OPENAI_API_KEY"),
        ({"TOOL_BASE_URL": LOCAL, "TOOL_MODEL": "m\udcff"}, "TOOL_MODEL"),
    ],
)
def test_half_settings_are_refused_with_what_is_missing(environment: dict[str, str], named: str):
    """A setting that cannot work is named together with what would complete it; keys are never shown."""
    with pytest.raises(ConfigurationError, match=named) as caught:
        model_settings(environment)
    assert "secret" not in str(caught.value)


ANTHROPIC = "https://api.anthropic.com/v1"


def test_anthropics_variables_name_its_server():
    """A key and a model are enough; the base URL is written without the version, as its users do."""
    settings = model_settings({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_MODEL": "claude"})
    assert settings.brain == settings.tool == Endpoint(ANTHROPIC, "claude", "k", wire="messages")
    other = {
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_MODEL": "m",
        "ANTHROPIC_BASE_URL": "https://other.example/anthropic",
    }
    assert model_settings(other).tool.base_url == "https://other.example/anthropic/v1"
    assert model_settings({"ANTHROPIC_API_KEY": "k"}).tool == Endpoint(None)


def test_openais_variables_come_first():
    """Where they name a server; a tier's own variables come before both, and keys stay with their server."""
    both = {"ANTHROPIC_API_KEY": "a", "ANTHROPIC_MODEL": "claude", "OPENAI_API_KEY": "o", "OPENAI_MODEL": "gpt"}
    assert model_settings(both).tool == Endpoint(OPENAI, "gpt", "o")
    own = {"ANTHROPIC_API_KEY": "a", "ANTHROPIC_MODEL": "claude", "TOOL_BASE_URL": LOCAL, "TOOL_MODEL": "small"}
    assert model_settings(own).tool == Endpoint(LOCAL, "small")
    assert model_settings(own).brain == Endpoint(ANTHROPIC, "claude", "a", wire="messages")
