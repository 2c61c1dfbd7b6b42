"""The common shape of everything that roles say to each other."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

_MOST = 1_000_000_000


def _in_bounds(number: int) -> int:
    if abs(number) > _MOST:
        raise ValueError("nothing has such a number")
    return number


Ordinal = Annotated[int, AfterValidator(_in_bounds)]
"""The number by which a model names a call, a result or a criterion. What is beyond 64 bits could be written to the
log and not read again; the bound is not told in a schema, which would cost tokens."""


class Contract(BaseModel):
    """A frozen message part that refuses unknown fields.

    Building a validator costs about a millisecond a class; `defer_build` moves that from import to first use.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True)

    @classmethod
    def kind(cls) -> str:
        """The name under which this payload travels: the class's own name."""
        return cls.__name__
