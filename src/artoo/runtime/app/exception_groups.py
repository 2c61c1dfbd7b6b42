"""Unwrap exception groups of concurrent parts to a single error.

A caller that writes `except ConfigurationError` or `except TimeoutError` around artoo expects this error itself,
not a group, wherever it was raised.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import TypeVar, cast

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


def plain(group: BaseExceptionGroup[BaseException], meant: BaseException | None = None) -> BaseException:
    """Return one error of a group. It is `meant` if the group contains it, otherwise the first error."""
    # The other errors are added to it as notes (PEP 678), so that they are not lost.
    errors = list(leaves(group))
    one = next((error for error in errors if error is meant), errors[0])
    for other in errors:
        if other is not one:
            one.add_note(f"at the same time: {type(other).__name__}: {other}")
    return one


async def alone(playing: Coroutine[None, None, T]) -> T:
    """Await a coroutine that runs task groups. If it raises a group, raise a single error of the group instead."""
    try:
        return await playing
    except BaseExceptionGroup as group:
        raise plain(group) from None


def leaves(group: BaseExceptionGroup[E]) -> Iterator[E]:
    """Yield all errors of a nested exception group."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(cast("BaseExceptionGroup[E]", error))
        else:
            yield error
