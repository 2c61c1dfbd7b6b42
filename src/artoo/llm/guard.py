"""A switch that keeps real models out of tests: one test that forgets its double must fail, not spend money.

The only state of this package that belongs to the process and not to an object: it has to reach transports that
a test never sees. `artoo.testing.forbid_real_models` is its public face.
"""

from __future__ import annotations

from artoo.contracts.errors import ConfigurationError

_forbidden = False
_doubles: set[str] = set()


def forbid(value: bool) -> bool:
    """Sets the switch and returns what it was."""
    global _forbidden
    before, _forbidden = _forbidden, value
    return before


def admit(address: str) -> None:
    """Says that a test double listens at `address` (a base URL)."""
    _doubles.add(address)


def retract(address: str) -> None:
    """Takes an admission back. Idempotent."""
    _doubles.discard(address)


def check(address: str) -> None:
    """Check that a real model may be asked. Raises ConfigurationError when real models are forbidden."""
    if _forbidden and address not in _doubles:
        raise ConfigurationError(
            f"a real model ({address}) was about to be asked, which this process forbids "
            "(artoo.testing.forbid_real_models); use ScriptedModel or ScriptedServer, or allow it for this test"
        )
