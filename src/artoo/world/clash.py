"""Two forks that changed one path: which changes stand, and which are lost to an earlier fork's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from artoo.contracts.changes import Clash, Node, printable_path
from artoo.world.caches import is_cached
from artoo.world.git_layout import is_scratch
from artoo.world.scan import Effect


@dataclass(slots=True)
class Winners:
    """The changes of the forks so far, by path, each with the name of its fork."""

    effects: dict[bytes, tuple[str, Effect]] = field(default_factory=dict[bytes, tuple[str, Effect]])
    _left_below: set[bytes] = field(default_factory=set[bytes])

    def take(self, name: str, effects: Sequence[Effect]) -> list[Clash]:
        """Adds a fork's changes; those that are lost, as clashes, unless nobody needs them. `effects` are in path
        order.
        """
        lost: dict[bytes, bool] = {}
        clashes: list[Clash] = []
        standing: list[Effect] = []
        for effect in effects:
            if _only_times(effect):
                continue
            if any(lost.get(above, False) for above in _above(effect.path)):
                lost[effect.path] = True
                if effect.after is None:
                    continue
            rival = self.rival(effect)
            if rival is None:
                standing.append(effect)
                continue
            lost[effect.path] = not (_is_directory(effect) and self._keeps_directory(effect.path))
            if not (is_scratch(effect.path) or is_cached(effect.path)):
                clashes.append(_clash(effect, rival, name))
        for effect in standing:
            self._add(name, effect)
        return clashes

    def _add(self, name: str, effect: Effect) -> None:
        self.effects.setdefault(effect.path, (name, effect))
        if effect.after is not None:
            self._left_below.update(_above(effect.path))

    def rival(self, effect: Effect) -> str | None:
        """The earlier fork to which a change is lost."""
        same_path = self.effects.get(effect.path)
        if same_path is not None:
            return None if _same(same_path[1], effect) else same_path[0]
        if effect.after is not None:
            for above in _above(effect.path):
                standing = self.effects.get(above)
                if standing is not None and not _is_directory(standing[1]):
                    return standing[0]
        if not _is_directory(effect) and effect.path in self._left_below:
            prefix = effect.path + b"/"
            return next(
                name
                for path, (name, one) in self.effects.items()
                if path.startswith(prefix) and one.after is not None
            )
        return None

    def closes(self, path: bytes) -> bool:
        """Whether an earlier fork left no directory at a path."""
        standing = self.effects.get(path)
        return standing is not None and not _is_directory(standing[1])

    def _keeps_directory(self, path: bytes) -> bool:
        return not self.closes(path)


def _same(one: Effect, other: Effect) -> bool:
    if one.after is None or other.after is None:
        return one.after is other.after
    if one.after.node is not other.after.node:
        return False
    if one.after.node is Node.LINK:
        return one.after.target == other.after.target
    if not one.after.same_metadata(other.after):
        return False
    if one.after.is_directory:
        return one.replaced_directory == other.replaced_directory
    return (one.digest, one.after.rdev) == (other.digest, other.after.rdev)


def _only_times(effect: Effect) -> bool:
    before, after = effect.before, effect.after
    if not effect.in_place or effect.replaced_directory or before is None or after is None:
        return False
    return before.same_metadata(after)


def _is_directory(effect: Effect) -> bool:
    return effect.after is not None and effect.after.is_directory


def _above(path: bytes) -> Iterator[bytes]:
    parts = path.split(b"/")
    return (b"/".join(parts[:count]) for count in range(2, len(parts)))


def _clash(effect: Effect, earlier: str, later: str) -> Clash:
    return Clash(
        path=printable_path(effect.path),
        reason=f"{earlier} and {later} left it differently; what {earlier} did stands",
        stands=earlier,
        lost=later,
    )


def by_path(effects: Iterable[Effect]) -> dict[bytes, Effect]:
    """Those that change more than times."""
    return {effect.path: effect for effect in effects if not _only_times(effect)}
