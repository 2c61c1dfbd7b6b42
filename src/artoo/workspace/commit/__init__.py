"""Apply approved changes to the user's files, all or nothing, and undo them. Both are one mechanism.

    check ─► prepare (before-images, staged contents) ─► manifest synced ─► execute ─► done synced
                                                              │                 │
                                                              └──── restore ◄───┘  failure, crash, undo

A manifest without `done` is restored by the next start; nothing is ever finished forward.
"""

from artoo.workspace.commit.apply import Keep, apply, prune, recover, undo, undoable, unreadable
from artoo.workspace.commit.manifest import Record, records_of, tasks_with_records

__all__ = [
    "Keep",
    "Record",
    "apply",
    "prune",
    "records_of",
    "recover",
    "tasks_with_records",
    "undo",
    "undoable",
    "unreadable",
]
