"""The public Python interface of artoo, such as `Artoo` and `tool`, with names that are loaded at first use.

Artoo is an autonomous multi-agent runtime that checks its work.

    from artoo import Artoo, tool

    async with Artoo() as artoo:
        result = await artoo.run("how many Python files are in src?")

Names are loaded when they are first used, so that importing artoo costs nothing.

This module imports nothing, not even from the standard library, because the command line runs it before
`cli.start`.
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
    from artoo.runtime.app.artoo import Artoo
    from artoo.runtime.app.run_options import Budgets, RunOptions
    from artoo.runtime.app.sync import run_sync
    from artoo.runtime.app.typed_results import Returned
    from artoo.runtime.changes.pending_changes import Pending
    from artoo.runtime.changes.run_changes import Changes, RunResult
    from artoo.runtime.config.loader import load_config
    from artoo.runtime.config.model import Config
    from artoo.tools.core.function_tools import Deps, tool
    from artoo.tools.core.middleware import ToolUse
    from artoo.tools.core.tool import Outcome

_ERRORS = "artoo.contracts.errors"
_HOMES = {
    "Artoo": "artoo.runtime.app.artoo",
    "tool": "artoo.tools.core.function_tools",
    "Deps": "artoo.tools.core.function_tools",
    "Outcome": "artoo.tools.core.tool",
    "ToolUse": "artoo.tools.core.middleware",
    "Changes": "artoo.runtime.changes.run_changes",
    "RunResult": "artoo.runtime.changes.run_changes",
    "Config": "artoo.runtime.config.model",
    "load_config": "artoo.runtime.config.loader",
    "RunOptions": "artoo.runtime.app.run_options",
    "ApplyMode": "artoo.contracts.settling",
    "Pending": "artoo.runtime.changes.pending_changes",
    "Returned": "artoo.runtime.app.typed_results",
    "run_sync": "artoo.runtime.app.sync",
    "Budgets": "artoo.runtime.app.run_options",
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
    "Deps",
    "Envelope",
    "FinalResult",
    "MemoryStoreError",
    "ModelAnswerInvalid",
    "ModelError",
    "ModelRefused",
    "ModelUnreachable",
    "Outcome",
    "Pending",
    "ProtocolError",
    "Returned",
    "RunOptions",
    "RunResult",
    "SandboxError",
    "ToolError",
    "ToolUse",
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
