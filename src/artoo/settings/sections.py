"""The base class of settings sections, and the strict number types.

Sections are frozen and refuse unknown keys.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator


class Section(BaseModel):
    """A mapping in a settings file. Its validator is built when it is first used, because of `defer_build`.

    Defaults are made with `model_construct`, so that a process without settings files builds no validators."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, populate_by_name=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, given: object) -> object:
        """Use the defaults if a section is empty, for example because all its lines are commented out."""
        return {} if given is None else given


def _not_a_truth_value(given: object) -> object:
    """Refuse a boolean as a number, because YAML reads `yes` and `on` as true, and Python treats true as 1."""
    if isinstance(given, bool):
        raise ValueError("must be a number")  # noqa: TRY004 - Pydantic turns only ValueError into a problem
    return given


Whole = Annotated[int, BeforeValidator(_not_a_truth_value)]
"""A whole number. A boolean is refused."""

Number = Annotated[float, BeforeValidator(_not_a_truth_value)]
"""A finite number. A boolean is refused."""
