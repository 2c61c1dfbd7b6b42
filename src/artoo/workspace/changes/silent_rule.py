"""The positive rule for what may take effect unasked (SPEC section 8.3): everything that it does not name asks.

Ordinary is a regular file, or a new directory, whose path has no hidden name, no character that cannot be seen and
no name that a tool starts by itself, with no execute bit, access list, extended attribute or second hard link, and
with this user as its owner. What holds it is a directory: the walk that found the file follows no link.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from artoo.contracts.changes import Node
from artoo.contracts.settling import ChangeClass
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.path_class import Places
from artoo.workspace.changes.shadowing import Shadowing
from artoo.workspace.changes.start_names import why_not_ordinary
from artoo.workspace.changes.verdict import Verdict
from artoo.workspace.fs.stat import NodeState


@dataclass(slots=True)
class SilentRule:
    """The rule over one change set."""

    places: Places
    _shadowing: Shadowing = field(default_factory=Shadowing)
    _given_groups: dict[bytes, int | None] = field(default_factory=dict[bytes, int | None])

    def unusual(self, effect: Effect) -> Verdict | None:
        """Return why a path of project or output folder is not ordinary; None if it is, or lies elsewhere."""
        below = self.places.below_bounds(effect.path)
        if below is None:
            return None
        if below and (reason := why_not_ordinary(below.split(b"/"), is_directory=_is_directory(effect))):
            return Verdict(ChangeClass.PERSISTENCE, reason)
        if effect.after is None or effect.in_place:
            return None
        if effect.after.node is Node.FILE:
            shadows = self._shadowing.reason(effect.path, is_new=effect.before is None)
            if shadows is not None:
                return Verdict(ChangeClass.PERSISTENCE, shadows)
        reason = self._metadata(effect, effect.after)
        return None if reason is None else Verdict(ChangeClass.MODE, reason)

    def _metadata(self, effect: Effect, after: NodeState) -> str | None:
        """Links and special files are never ordinary, whatever this says: the table asks about them."""
        group = self._given_group(effect.path)
        if after.node is Node.FILE and after.mode & 0o111:
            return "it can be executed"
        if after.mode & (0o7000 if after.node is Node.FILE or group is None else 0o5000):
            return "its mode has special bits"
        if after.xattrs:
            return "it has an access list or extended attributes"
        before = effect.before if effect.before is not None and effect.before.node is Node.FILE else None
        if after.node is Node.FILE and max(after.links, before.links if before is not None else 1) > 1:
            return "it has other names (hard links)"
        groups = {os.getegid(), group, None if before is None else before.gid}
        if after.uid != os.geteuid() or after.gid not in groups:
            return "it belongs to another user or group"
        return None

    def _given_group(self, path: bytes) -> int | None:
        """Return the group that the user's directory gives to new files (set-group-id), if it gives one."""
        directory = path.rpartition(b"/")[0]
        if directory not in self._given_groups:
            try:
                seen = os.lstat(directory or b"/")
                self._given_groups[directory] = seen.st_gid if seen.st_mode & 0o2000 else None
            except OSError:  # the task made it, and it got its group from the one above
                self._given_groups[directory] = self._given_group(directory)
        return self._given_groups[directory]


def _is_directory(effect: Effect) -> bool:
    return all(state is None or state.is_directory for state in (effect.before, effect.after))
