"""The base class of all messages, which is frozen and refuses unknown fields."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Contract(BaseModel):
    """A part of a message. It is frozen and refuses unknown fields.

    `defer_build` builds the validator when it is first used. At import it would take about a millisecond for each
    class.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True)

    @classmethod
    def kind(cls) -> str:
        """Return the name of this payload in messages, which is the class's name."""
        return cls.__name__
