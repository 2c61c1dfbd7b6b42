"""Raise one error instead of the groups in which concurrent parts raise it.

A caller that writes `except ConfigurationError` or `except TimeoutError` around artoo means the error, wherever it
was raised.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import TypeVar, cast

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


def plain(group: BaseExceptionGroup[BaseException], meant: BaseException | None = None) -> BaseException:
    """Return the one error that a group contains: `meant` if it is in there, else the first."""
    # The notes (PEP 678) name the other errors, so that nothing is lost.
    errors = list(leaves(group))
    one = next((error for error in errors if error is meant), errors[0])
    for other in errors:
        if other is not one:
            one.add_note(f"at the same time: {type(other).__name__}: {other}")
    return one


async def alone(playing: Coroutine[None, None, T]) -> T:
    """Await a coroutine that runs task groups, and raise its error without a group."""
    try:
        return await playing
    except BaseExceptionGroup as group:
        raise plain(group) from None


def leaves(group: BaseExceptionGroup[E]) -> Iterator[E]:
    """Yield the errors in a group of groups."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(cast("BaseExceptionGroup[E]", error))
        else:
            yield error
