"""artoo: an autonomous multi-agent runtime that checks its work.

    from artoo import Artoo, tool

    async with Artoo() as artoo:
        result = await artoo.run("how many Python files are in src?")

Names are loaded when they are first used, so that importing artoo costs nothing.

Nothing is imported here, of the standard library neither: for the command line this comes before `cli.start`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from artoo.contracts.confirmation import Choice, ConfirmationRequest, Consent
    from artoo.contracts.envelope import Envelope
    from artoo.contracts.errors import (
        ArtooError,
        BudgetExhausted,
        ConfigurationError,
        MemoryStoreError,
        ModelAnswerInvalid,
        ModelError,
        ModelRefused,
        ModelUnreachable,
        ProtocolError,
        SandboxError,
        ToolError,
    )
    from artoo.contracts.request import Turn
    from artoo.contracts.settling import ApplyMode
    from artoo.contracts.solution import FinalResult
    from artoo.runtime.artoo import Artoo
    from artoo.runtime.changes import Changes, RunResult
    from artoo.runtime.config import Config
    from artoo.runtime.config_file import load_config
    from artoo.runtime.options import Budgets, RunOptions
    from artoo.runtime.pending import Pending
    from artoo.runtime.returning import Returned
    from artoo.runtime.sync import run_sync
    from artoo.tools.user_tools import tool

_ERRORS = "artoo.contracts.errors"
_HOMES = {
    "Artoo": "artoo.runtime.artoo",
    "tool": "artoo.tools.user_tools",
    "Changes": "artoo.runtime.changes",
    "RunResult": "artoo.runtime.changes",
    "Config": "artoo.runtime.config",
    "load_config": "artoo.runtime.config_file",
    "RunOptions": "artoo.runtime.options",
    "ApplyMode": "artoo.contracts.settling",
    "Pending": "artoo.runtime.pending",
    "Returned": "artoo.runtime.returning",
    "run_sync": "artoo.runtime.sync",
    "Budgets": "artoo.runtime.options",
    "Choice": "artoo.contracts.confirmation",
    "ConfirmationRequest": "artoo.contracts.confirmation",
    "Consent": "artoo.contracts.confirmation",
    "Envelope": "artoo.contracts.envelope",
    "FinalResult": "artoo.contracts.solution",
    "Turn": "artoo.contracts.request",
    "ArtooError": _ERRORS,
    "BudgetExhausted": _ERRORS,
    "ConfigurationError": _ERRORS,
    "MemoryStoreError": _ERRORS,
    "ModelAnswerInvalid": _ERRORS,
    "ModelError": _ERRORS,
    "ModelRefused": _ERRORS,
    "ModelUnreachable": _ERRORS,
    "ProtocolError": _ERRORS,
    "SandboxError": _ERRORS,
    "ToolError": _ERRORS,
}

__all__ = [
    "ApplyMode",
    "Artoo",
    "ArtooError",
    "BudgetExhausted",
    "Budgets",
    "Changes",
    "Choice",
    "Config",
    "ConfigurationError",
    "ConfirmationRequest",
    "Consent",
    "Envelope",
    "FinalResult",
    "MemoryStoreError",
    "ModelAnswerInvalid",
    "ModelError",
    "ModelRefused",
    "ModelUnreachable",
    "Pending",
    "ProtocolError",
    "Returned",
    "RunOptions",
    "RunResult",
    "SandboxError",
    "ToolError",
    "Turn",
    "load_config",
    "run_sync",
    "tool",
]


def __getattr__(name: str) -> object:
    """Loads a public name from its module, once."""
    import importlib

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted(__all__)
