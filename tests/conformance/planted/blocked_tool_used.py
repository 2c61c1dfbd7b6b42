"""A tool that the directive has blocked is used all the same, and with success."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    call = changed(stream.payload("ToolCalled", -1).call, tool="python", identity=("python",), status="ok")
    stream.change("ToolCalled", -1, call=call)


FAULT = StreamFault("a second plan", plant)
