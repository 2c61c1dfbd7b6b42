"""Access to the page: a token in the address, good once, becomes a cookie. Only their hashes are stored.

    <home>/web/tokens/<sha256>     a token that was handed out and not used; its time of making is the file's
    <home>/web/sessions/<sha256>   a cookie, good for a month; so a page goes on when the server was started again

Tokens go through the home and not through the environment or a command line: no other process can see them there.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from pathlib import Path

TOKEN_SECONDS = 15 * 60.0
SESSION_SECONDS = 30 * 86_400.0
MOST_KEPT = 50
"""Of each kind: the latest."""

_SECRET_BYTES = 32
_LONGEST = 128


class Entry:
    """The tokens and sessions of one home. Blocking, in microseconds: small files."""

    def __init__(self, home: Path) -> None:
        self._tokens = home / "web" / "tokens"
        self._sessions = home / "web" / "sessions"

    def token(self) -> str:
        """Create a new token. Raises OSError when the home cannot be written."""
        return _made(self._tokens)

    def enter(self, token: str) -> str | None:
        """Uses up a token and returns a new session's secret; None for one that is unknown, old or used."""
        path = _place(self._tokens, token)
        try:
            born = path.stat().st_mtime
            # Of two requests with the same token only one can remove the file.
            path.unlink()
        except (FileNotFoundError, ValueError):
            return None
        return _made(self._sessions) if time.time() - born <= TOKEN_SECONDS else None

    def knows(self, session: str) -> bool:
        """Check whether this is the secret of a session that is still valid."""
        try:
            return time.time() - _place(self._sessions, session).stat().st_mtime <= SESSION_SECONDS
        except (OSError, ValueError):
            return False


def _made(folder: Path) -> str:
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(_place(folder, secret), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    # Only the latest are kept, so that the folder cannot grow without bound.
    for old in sorted(folder.iterdir(), key=_age)[:-MOST_KEPT]:
        old.unlink(missing_ok=True)
    return secret


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _place(folder: Path, secret: str) -> Path:
    """Return the file of a secret, by its hash: no secret can name another file, and the folder reveals none."""
    return folder / hashlib.sha256(secret[:_LONGEST].encode("utf-8", "replace")).hexdigest()
