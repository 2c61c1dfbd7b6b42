"""The choice of a session's model in the editor, by ACP's configuration options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acp.schema import SessionConfigOptionBoolean, SessionConfigOptionSelect, SessionConfigSelectOption

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.app.models import served_models
from artoo.runtime.config.model import Config

Options = list[SessionConfigOptionSelect | SessionConfigOptionBoolean]

MODEL_OPTION = "model"
"""The id of the option in ACP."""


async def models_to_choose(config: Config, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the models that a session may use. Return none if the settings of the models cannot work.

    The error in the settings is reported when a prompt is sent, so that the editor can open a session in which the
    user reads it.
    """
    try:
        return await served_models(config, environ)
    except ConfigurationError:
        return ()


def option_of(models: Sequence[str], current: str | None) -> Options | None:
    """Return the choice of a model in the form of ACP. Return None if there is nothing to choose from.

    `current` is the chosen model. None means the first one, which is configured.
    """
    if not models:
        return None
    return [
        SessionConfigOptionSelect(
            type="select",
            id=MODEL_OPTION,
            name="Model",
            category="model",
            current_value=current or models[0],
            options=[SessionConfigSelectOption(value=name, name=name) for name in models],
        )
    ]
