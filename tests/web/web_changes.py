"""A task that edits one file, deletes one and makes one, done by a scripted model."""

from __future__ import annotations

from artoo.testing import slow, with_body
from artoo.testing.script import Entry

CHANGE = "sed -i s/old/new/ a.txt; rm gone.txt; echo made > made.txt"


def script(seconds: float = 0.0, change: str = CHANGE) -> dict[str, Entry]:
    """One plan, which may take a while, and one step."""
    made = {"check": "file_exists", "path": "made.txt"}
    criteria = [{"text": "made.txt exists", "mode": "verifiable", "check": made}]
    plan = {"subtasks": [{"intent": "tidy up", "tool": "shell", "success_criteria": criteria}]}
    if seconds:
        return {"Plan": slow(plan, seconds)}
    return {"Plan": plan, "ExecutorStep": with_body({"tool": "shell", "is_final": True}, change)}
