"""Detection of pasted or dragged image paths in the typed line, plain, quoted or escaped, at most 32."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from artoo.runtime.app.images import MOST_IMAGES, is_image

_QUOTED = r"'((?:~?/|file://)[^']+)'|\"((?:~?/|file://)[^\"]+)\""
_BARE = r"((?:~?/|file://)(?:\\.|[^\s\\])+)"
_PATH = re.compile(rf"(?<!\S)(?:{_QUOTED}|{_BARE})")
_MOST_LOOKED_AT = 32


def images_in(line: str) -> tuple[Path, ...]:
    """Return the images whose full paths (or file URLs) are in the line, each once, in order.

    A file name without a directory does not count. In "rename a.png", for example, the model need not see the
    image.
    """
    found = (path for path in _paths_in(line) if is_image(path))
    return tuple(dict.fromkeys(found))[:MOST_IMAGES]


def _paths_in(line: str) -> Iterator[Path]:
    for number, match in enumerate(_PATH.finditer(line)):
        # A pasted listing may contain thousands of paths, and each check reads from the disk.
        if number == _MOST_LOOKED_AT:
            return
        single, double, bare = match.groups()
        written = single or double or re.sub(r"\\(.)", r"\1", bare)
        path = _path(written)
        if bare and not path.exists():
            # Punctuation of the sentence may directly follow the path.
            path = _path(written.rstrip(".,;:!?)]}"))
        yield path


def _path(written: str) -> Path:
    if written.startswith("file://"):
        return Path(unquote(urlsplit(written).path))
    return Path(os.path.expanduser(written))  # noqa: PTH111 - unlike pathlib, it keeps an unknown user's `~name`
