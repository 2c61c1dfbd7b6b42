"""The default port of the web UI (7226), and its tokens (15 minutes) and session cookies (30 days) as hashes.

A token in the address, valid once, is exchanged for a cookie. Only hashes are stored.

    <home>/web/tokens/<sha256>     an unused token; the file's modification time is the time of its creation
    <home>/web/sessions/<sha256>   a cookie, valid for a month, so that pages still work after a server restart

Tokens are passed by files, because other users could see an environment variable or a command line.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from pathlib import Path

PORT = 7226
"""The default port. It is fixed, so that users can bookmark addresses."""

TOKEN_SECONDS = 15 * 60.0
SESSION_SECONDS = 30 * 86_400.0
MOST_KEPT = 50
"""The most tokens, and the most sessions, that are kept. The oldest are removed first."""

_SECRET_BYTES = 32
_LONGEST = 128


class Entry:
    """The tokens and sessions of one home. Methods block only for microseconds, because the files are small."""

    def __init__(self, home: Path) -> None:
        self._tokens = home / "web" / "tokens"
        self._sessions = home / "web" / "sessions"

    def token(self) -> str:
        """Create a new token. Raises OSError if the home cannot be written."""
        return _made(self._tokens)

    def enter(self, token: str) -> str | None:
        """Use up a token and return a new session's secret, or None if the token is unknown, expired or used."""
        path = _place(self._tokens, token)
        try:
            born = path.stat().st_mtime
            # If two requests have the same token, only one of them can remove the file.
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
    # Only the latest files are kept, so that the folder cannot grow without bound.
    for old in sorted(folder.iterdir(), key=_age)[:-MOST_KEPT]:
        old.unlink(missing_ok=True)
    return secret


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _place(folder: Path, secret: str) -> Path:
    """Return the file of a secret, named by its hash, so that a secret cannot name another path or be revealed."""
    return folder / hashlib.sha256(secret[:_LONGEST].encode("utf-8", "replace")).hexdigest()
