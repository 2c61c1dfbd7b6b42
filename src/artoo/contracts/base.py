"""Define the common shape of all messages between roles."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Contract(BaseModel):
    """A frozen message part that refuses unknown fields.

    Building a validator costs about a millisecond a class; `defer_build` moves that from import to first use.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True)

    @classmethod
    def kind(cls) -> str:
        """Return the name under which this payload travels: the class's own name."""
        return cls.__name__
