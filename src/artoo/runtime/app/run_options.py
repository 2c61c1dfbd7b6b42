"""The options of one run and of one call in Python, with the parser of `--budget` and the largest amounts.

The options say where the task works, and limit its operations and its cost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast, get_args

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.plan import Effort
from artoo.contracts.settling import ApplyMode
from artoo.contracts.text import well_formed

if TYPE_CHECKING:
    from artoo.contracts.request import Turn
    from artoo.runtime.app.caller import Caller
    from artoo.runtime.config.model import Limits
    from artoo.runtime.task.agent_context import Behalf


Bound = TypeVar("Bound", int, float)

_WHOLE = ("calls", "tokens")
"""The names of the budgets that are whole numbers."""
_MOST = 10**12
"""The maximum of every budget. A larger amount is surely a mistake, and some amounts could not be written to a
log."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """The limits of one task. A limit that is None is taken from the configuration, or else from the task's effort.

    `seconds` limits the elapsed time, `calls` the model calls, `tokens` the tokens of prompts and completions
    together, and `money` an amount in the currency of the configured prices. All limits must be above zero, because
    a task without anything left to spend cannot run.
    """

    seconds: float | None = None
    calls: int | None = None
    tokens: int | None = None
    money: float | None = None

    def __post_init__(self) -> None:
        """Check the amounts. Raises ConfigurationError for a value that is no number, not above zero, or too
        large."""
        for name in self.__slots__:
            value: object = getattr(self, name)
            whole = name in _WHOLE
            if value is not None and not _is_amount(value, whole=whole):
                raise ConfigurationError(f"Budgets({name}={value!r}): it is not {_kind(whole=whole)}")

    def within(self, other: Budgets) -> Budgets:
        """Return, for each limit, the smaller value of both budgets."""
        return Budgets(
            seconds=_narrower(self.seconds, other.seconds),
            calls=_narrower(self.calls, other.calls),
            tokens=_narrower(self.tokens, other.tokens),
            money=_narrower(self.money, other.money),
        )

    def over(self, limits: Limits) -> Budgets:
        """Return these budgets. Limits that are None are taken from the configuration."""
        return Budgets(
            seconds=self.seconds,
            calls=limits.calls if self.calls is None else self.calls,
            tokens=limits.tokens if self.tokens is None else self.tokens,
            money=limits.money if self.money is None else self.money,
        )

    @classmethod
    def parse(cls, lines: Sequence[str]) -> Budgets:
        """Parse lines such as `seconds=60,calls=10`. If a limit occurs several times, the last value counts. Raises
        ConfigurationError that names the invalid part."""
        values: dict[str, Any] = {}
        for part in filter(None, (part.strip() for line in lines for part in line.split(","))):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or name not in cls.__slots__:
                raise ConfigurationError(
                    f"--budget {part!r} is not understood; write for example "
                    "seconds=120,calls=20,tokens=50000,money=0.50"
                )
            try:
                number = float(value.replace("_", ""))
            except ValueError:
                number = math.nan
            values[name] = int(number) if name in _WHOLE and number.is_integer() else number
            if not _is_amount(values[name], whole=name in _WHOLE):
                raise ConfigurationError(f"--budget {part!r}: {value!r} is not {_kind(whole=name in _WHOLE)}")
        return cls(**values)


def _narrower(one: Bound | None, other: Bound | None) -> Bound | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _is_amount(value: object, *, whole: bool) -> bool:
    kinds = int if whole else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and 0 < value <= _MOST


def _kind(*, whole: bool) -> str:
    return f"{'a whole number' if whole else 'a number'} above zero, and at most {_MOST:,}"


def check_policy_line(line: str) -> None:
    """Check that a standing permission names a kind of operation and its target. Raises ConfigurationError."""
    # imported here, because most runs have no line to check
    from artoo.tools.approval.policy import parse_policy

    parse_policy(line)


def listed(name: str, given: object, *kinds: type) -> tuple[Any, ...]:
    """Return the given items as a tuple. Raises ConfigurationError unless `given` is a list of items of these
    kinds. A caller without a type checker thus gets the error at once, and not later from the single letters of a
    text.
    """
    wanted = " or ".join(kind.__name__ for kind in kinds)
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ConfigurationError(f"{name}={given!r} must be a list of {wanted}: {name}=[{given!r}]")
    found = tuple(cast("Iterable[object]", given))
    for one in found:
        if not isinstance(one, kinds):
            raise ConfigurationError(f"{name}: {one!r} is no {wanted}")
    return found


def require(name: str, given: object, kind: type, example: str = "") -> None:
    """Check the type of a value. For example, a text in place of a boolean would count as true. Raises
    ConfigurationError."""
    if not isinstance(given, kind):
        such = f", as in {example}" if example else ""
        raise ConfigurationError(f"{name}={given!r} must be a {kind.__name__}{such}")


def _require_schema(given: object) -> None:
    require("returns", given, Mapping, 'returns={"type": "object", …}')
    try:
        json.dumps(dict(cast("Mapping[object, object]", given)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"returns={given!r} is no JSON schema: {error}") from error


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one task. Paths may be relative to the current directory. For an option that is None, the
    configuration decides.

    `project` is the directory in which commands run (by default the current one), and `workspace` the directory for
    generated output. `apply` decides which of the task's changes are applied without approval (`new`, `edits` or
    `ask`). `allow` are standing permissions ("edits src/**") in addition to those of the configuration. `checks`
    are commands that must succeed at the end. `verify` requests a second way of computing the result even if the
    model is not known to be small. `effort` says how large the task is (`quick`, `normal`, `long`; None: the plan
    decides). If `plan` is true, a user must approve each plan before it runs. `model` is another model of the
    configured servers, which is used for this task only.

    `strict` sets δ = 0. `strict_roles` makes every role call its model. If `memory` is false, shared memory is
    neither read nor written. `behalf`: the agent of a team for which the task is done. `returns`: the JSON schema
    of the value that the result must contain. `caller`: the program that asks for the task (None: the user of this
    process asks). `images` are image files, or the bytes of images, that the models are shown (PNG, JPEG, GIF,
    WebP). `material`: data that belong to the request. The task finds them in a file in its own /tmp, which the
    request then names.
    """

    workspace: Path | None = None
    project: Path | None = None
    apply: ApplyMode | Literal["new", "edits", "ask", "live", "all"] | None = None
    allow: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    verify: bool = False
    budgets: Budgets = Budgets()
    effort: Effort | None = None
    model: str | None = None
    plan: bool = False
    strict: bool = False
    strict_roles: bool = False
    memory: bool = True
    behalf: Behalf | None = None
    returns: Mapping[str, object] | None = None
    caller: Caller | None = None
    images: tuple[Path | bytes, ...] = ()
    material: bytes = b""

    def __post_init__(self) -> None:
        """Check the options. Raises ConfigurationError for an unknown mode, an empty check, or a value of the wrong
        type."""
        for name, kinds in (("allow", (str,)), ("checks", (str,)), ("images", (Path, bytes))):
            object.__setattr__(self, name, listed(name, getattr(self, name), *kinds))
        for name in ("workspace", "project"):
            if (place := getattr(self, name)) is not None:
                require(name, place, Path, f"{name}=Path({str(place)!r})")
        require("material", self.material, bytes, "material=b'…'")
        for name in ("verify", "plan", "strict", "strict_roles", "memory"):
            require(name, getattr(self, name), bool, f"{name}=True")
        require("budgets", self.budgets, Budgets, "Budgets(seconds=300, calls=20)")
        if self.effort not in (None, *get_args(Effort)):
            raise ConfigurationError(f"effort={self.effort!r} is not one of: {', '.join(get_args(Effort))}")
        if self.model is not None and not str(self.model).strip():
            raise ConfigurationError("model is empty; name a model of the configured server, or leave it out")
        if self.returns is not None:
            _require_schema(self.returns)
        self.mode(ApplyMode.NEW)
        if any(not command.strip() for command in self.checks):
            raise ConfigurationError("a check is empty; name a command that must succeed, as in: pytest -q")
        for command in self.checks:
            # A command in which undecodable bytes are replaced would be another command.
            if (said := well_formed(command)) != command:
                raise ConfigurationError(
                    f"the check {said!r} is not valid UTF-8; name such a file by a pattern, as in: ls caf*"
                )

    def mode(self, configured: ApplyMode) -> ApplyMode:
        """Return the mode that decides which changes are applied without approval. Raises ConfigurationError for an
        unknown mode."""
        try:
            return configured if self.apply is None else ApplyMode(self.apply)
        except ValueError:
            raise ConfigurationError(f"apply={self.apply!r} is not one of: {', '.join(ApplyMode)}") from None


class CallOptions(TypedDict, total=False):
    """The options of one call of `Artoo.run`, `Artoo.stream` or `run_sync`.

    `checks` are commands that must succeed at the end; `images` are shown to the models. Both are added to those of
    `options`. `history`: the earlier turns of the conversation.
    """

    checks: Sequence[str]
    images: Sequence[Path | bytes]
    history: Sequence[Turn]
    options: RunOptions | None


def options_of_call(call: CallOptions) -> RunOptions:
    """Return the options of one call, with its own additions. Raises ConfigurationError for a bad one."""
    if unknown := call.keys() - CallOptions.__annotations__.keys():
        known = ", ".join(CallOptions.__annotations__)
        raise TypeError(f"{', '.join(sorted(unknown))} is no option of a call; known: {known}")
    checks = listed("checks", call.get("checks", ()), str)
    images = listed("images", call.get("images", ()), Path, bytes)
    given = call.get("options")
    options = RunOptions() if given is None else given
    require("options", options, RunOptions, "options=RunOptions(apply='edits')")
    return replace(options, checks=(*options.checks, *checks), images=(*options.images, *images))
