"""A person says no, and the act is recorded as done."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    call, target = stream.payload("ToolCalled").call, stream.payload("ConfirmationRequest").acts[0].target
    stream.change(
        "ToolCalled",
        call=changed(call, changes=(target,), dropped=(), status="ok", withheld_by=None, reason=None),
    )


FAULT = StreamFault("a host that was refused", plant)
