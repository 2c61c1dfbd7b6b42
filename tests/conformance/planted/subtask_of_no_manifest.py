"""A subtask that is handed out beside the manifest."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("DispatchManifest", subtasks=stream.payload("DispatchManifest").subtasks[:1])


FAULT = StreamFault("two at once", plant)
