"""A person says no, and the act is recorded as done."""

from __future__ import annotations

from faults import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    call = stream.payload("ToolCalled").call
    stream.change(
        "ToolCalled",
        call=changed(call, changes=call.dropped, dropped=(), status="ok", withheld_by=None, reason=None),
    )


FAULT = StreamFault("a deletion that was refused", plant)
