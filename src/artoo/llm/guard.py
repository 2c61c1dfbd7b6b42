"""The switch that forbids real models in tests, with the addresses of test doubles.

A test without its double then fails instead of spending money.

This is the only state of the package that belongs to the process and not to an object, because it must also reach
transports that a test never sees. `artoo.testing.forbid_real_models` is its public interface.
"""

from __future__ import annotations

from artoo.contracts.errors import ConfigurationError

_forbidden = False
_doubles: set[str] = set()


def forbid(value: bool) -> bool:
    """Switch the guard on or off. Return whether it was on before."""
    global _forbidden
    before, _forbidden = _forbidden, value
    return before


def admit(address: str) -> None:
    """Register the address (a base URL) of a test double, which may be asked."""
    _doubles.add(address)


def retract(address: str) -> None:
    """Remove a registered address. Idempotent."""
    _doubles.discard(address)


def check(address: str) -> None:
    """Check that a real model may be asked. Raises ConfigurationError if real models are forbidden."""
    if _forbidden and address not in _doubles:
        raise ConfigurationError(
            f"a real model ({address}) was about to be asked, which this process forbids "
            "(artoo.testing.forbid_real_models); use ScriptedModel or ScriptedServer, or allow it for this test"
        )
