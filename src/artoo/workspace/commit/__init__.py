"""Atomic apply and undo of approved changes, with manifest, preparation, execution, restoration and recovery.

Apply and undo use the same mechanism.

    check ─► prepare (before-images, staged contents) ─► manifest synced ─► execute ─► done synced
                                                              │                 │
                                                              └──── restore ◄───┘  failure, crash, undo

If a manifest has no `done`, the next start of artoo restores the old state. An interrupted apply is therefore
rolled back, never completed.
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
