"""Parse a streamed answer (server-sent events or newline-delimited JSON) by its content.

The classes are pure. The content type of the answer is ignored.
"""

from __future__ import annotations

from typing import cast

import orjson

from artoo.llm.text.jsontext import read_leniently
from artoo.llm.transport import Json

Event = dict[str, Json]

_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DONE = b"[DONE]"
# Stands for the marker that ends a stream.
DONE: Event = {"object": "done"}


class EventReader:
    """Parses server-sent events and newline-delimited JSON while their bytes arrive. Use one reader for each
    answer.

    The first line decides which of the two formats it is. `streamed` is False as long as the answer may be a single
    JSON document, which is parsed as a whole at the end. An event named `error` becomes `{"error": …}`. `unread`:
    true if some data were no JSON.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.streamed = False
        self.unread = False
        self._rest = b""
        self._decided = False
        self._name = b""
        self._data = b""

    def feed(self, piece: bytes) -> list[Event]:
        """Process some bytes. Return the events that they complete."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        before = len(self.events)
        for line in lines:
            self._take(line.rstrip(b"\r"))
        return self.events[before:]

    def end(self) -> list[Event]:
        """Process the end of the answer. Return the events that it completes."""
        before = len(self.events)
        rest, self._rest = self._rest, b""
        if rest:
            self._take(rest.rstrip(b"\r"))
        self._flush()
        return self.events[before:]

    def _take(self, line: bytes) -> None:
        if not self._decided:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            if not line:
                return
            self._decided = True
            self.streamed = line.startswith(_FIELDS) or _object(line) is not None
        if not self.streamed:
            return
        if not line:
            self._flush()
        elif line.startswith(b"data:"):
            self._take_data(line.removeprefix(b"data:").removeprefix(b" "))
        elif line.startswith(b"event:"):
            self._flush()  # some servers omit the empty line between two events
            self._name = line.removeprefix(b"event:").strip()
        elif line.startswith(b"{"):
            self._take_data(line)
            self._flush()

    def _take_data(self, data: bytes) -> None:
        """Process a line of data. Usually the line completes an event. An object over several lines needs further
        lines."""
        self._data = self._data + b"\n" + data if self._data else data
        found = _object(self._data)
        if found is not None:
            self._add(found)
            self._data = b""

    def _flush(self) -> None:
        data, self._data = self._data.strip(), b""
        if data == _DONE:
            self.events.append(DONE)
        elif data:
            found = read_leniently(data)
            if isinstance(found, dict):
                self._add(cast(Event, found))
            else:
                self.unread = True
        self._name = b""

    def _add(self, found: Event) -> None:
        self.events.append({"error": found} if self._name == b"error" and "error" not in found else found)


def _object(data: bytes) -> Event | None:
    if not data.lstrip().startswith(b"{"):
        return None
    try:
        found: Json = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def objects(value: Json) -> list[Event]:
    """Return the JSON objects in a list. Return an empty list for any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
