"""Where an act's before-images lie: a few in each directory; of what had other names a name is kept, too.

To bring a file into a directory of hundreds costs twice as much (ext4: 18 us among 420, 10 among 64).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

_IN_EACH = 64
_NAMES = "names"
_FLAT = "before"
"""The one directory of all images of an act that an earlier artoo wrote down."""


class Images:
    """Of one act. Names are text, as one is asked for each path of an act."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._top = f"{record}/images"
        self._made: set[int] = set()

    @cached_property
    def _flat(self) -> bool:
        return os.path.isdir(f"{self._record}/{_FLAT}")

    def at(self, number: int) -> str:
        """Where the before-image of the step with this number lies."""
        if self._flat:
            return f"{self._record}/{_FLAT}/{number}"
        return f"{self._top}/{number // _IN_EACH}/{number}"

    def make_room(self, number: int) -> str:
        """The same, in a directory that is there from now on. Raises OSError."""
        group = number // _IN_EACH
        if group not in self._made:
            os.makedirs(f"{self._top}/{group}", mode=0o700, exist_ok=True)
            self._made.add(group)
        return self.at(number)

    def name_at(self, number: int) -> str:
        """Where one more name of the old file lies, if it had others: its image is a copy, and it is not."""
        return f"{self._record}/{_NAMES}/{number}"

    def make_room_for_name(self, number: int) -> str:
        """The same, in a directory that is there from now on. Raises OSError."""
        os.makedirs(f"{self._record}/{_NAMES}", mode=0o700, exist_ok=True)
        return self.name_at(number)

    def directories(self) -> Iterator[Path]:
        """Those in which there is room, and what they lie in: durable before an act is."""
        top = Path(self._top)
        yield from (top / str(group) for group in sorted(self._made))
        if self._made:
            yield top
        if (names := Path(f"{self._record}/{_NAMES}")).is_dir():
            yield names

    def bytes_kept(self) -> int:
        """Bytes of all images here, and of old files that have no name but here. Raises OSError."""
        tops = [self._record / _FLAT] if self._flat else list(self._record.glob("images/*"))
        return sum(image.lstat().st_size for top in tops for image in top.iterdir()) + self._bytes_named()

    def _bytes_named(self) -> int:
        seen = [name.lstat() for name in self._record.glob(f"{_NAMES}/*")]
        names = Counter(one.st_ino for one in seen)
        alone = {one.st_ino: one.st_size for one in seen if one.st_nlink == names[one.st_ino]}
        return sum(alone.values())
