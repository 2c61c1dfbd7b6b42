"""Law 1's decision table over changes: a pure function. What it does not know to be harmless, it asks about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from artoo.contracts.changes import Change, ChangeKind, Node, PathClass, Trait
from artoo.ports.sandbox import MIB

FLOOD_BYTES = 256 * MIB
FLOOD_PATHS = 5_000

_BOUNDS = frozenset({PathClass.PROJECT, PathClass.WORKSPACE})


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an act may happen unasked; if not, which changes to ask about and why. `ask` is in path order."""

    ask: tuple[tuple[Change, str], ...]
    flood: str | None = None

    @property
    def silent(self) -> bool:
        return not self.ask and self.flood is None


def decide(changes: Iterable[Change]) -> Decision:
    """The decision for one act. Changes that this task owns carry `Trait.OWN`."""
    listed = tuple(changes)
    asked = tuple((change, reason) for change in listed if (reason := why_ask(change)) is not None)
    return Decision(asked, _flood(listed))


def why_ask(change: Change) -> str | None:
    """Why this change needs a yes, None when it needs none (SPEC section 8)."""
    danger = _dangerous(change)
    if danger is not None:
        return danger
    if change.has(Trait.GIT_BOOKKEEPING):
        return None
    if change.sensitive:
        return _SENSITIVE[change.path_class]
    if change.has(Trait.OWN):
        return None
    if change.path_class not in _BOUNDS:
        return "outside project and workspace"
    if change.before is None or change.has(Trait.TIMES_ONLY) or _derived(change):
        return None
    return _LOSSES[change.kind]


_SENSITIVE = {
    PathClass.ARTOO: "artoo's own files",
    PathClass.SECRET: "a place for credentials",
    PathClass.PERSISTENCE: "runs or configures programs later",
}
_LOSSES = {
    ChangeKind.CREATED: "is created",
    ChangeKind.OVERWRITTEN: "what is there now is overwritten",
    ChangeKind.DELETED: "is deleted",
    ChangeKind.METADATA: "mode, owner or attributes change",
    ChangeKind.LINK: "what is there now is replaced by a link",
    ChangeKind.DIRECTORY_REPLACED: "the directory is deleted and made again",
    ChangeKind.SPECIAL: "what is there now is replaced by a special file",
}


def _dangerous(change: Change) -> str | None:
    """Effects that no place and no ownership make ordinary."""
    if change.has(Trait.PRIVILEGED):
        return "gives a program the rights of its owner"
    if change.has(Trait.POINTS_OUTSIDE):
        return "a link out of project and workspace"
    if change.kind is ChangeKind.SPECIAL:
        return "a special file (pipe, socket or device)"
    return None


def _derived(change: Change) -> bool:
    """Caches that programs make again by themselves."""
    return change.has(Trait.DERIVED) and change.node is Node.FILE and change.before is Node.FILE


def _flood(changes: tuple[Change, ...]) -> str | None:
    total = sum(change.size_after or 0 for change in changes)
    if total > FLOOD_BYTES:
        return f"{total / MIB:,.0f} MiB of data are written"
    if len(changes) > FLOOD_PATHS:
        return f"{len(changes):,} paths change"
    return None
