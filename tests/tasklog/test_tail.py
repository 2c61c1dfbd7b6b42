"""A log read while it grows: every whole line once, in order, across parts and torn lines."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import orjson
from hypothesis import given
from hypothesis import strategies as st

from artoo.tasklog.blobs import BlobStore
from artoo.tasklog.layout import part_path
from artoo.tasklog.tail import LogTail


def header(part: int) -> bytes:
    return orjson.dumps({"artoo_task_log": 1, "task_id": "t", "part": part}) + b"\n"


def line(number: int) -> bytes:
    return orjson.dumps({"kind": "Observed", "payload": {"n": number}})


def all_of(tail: LogTail) -> list[bytes]:
    found: list[bytes] = []
    while lines := tail.read():
        found += lines
    return found


@given(cuts=st.lists(st.integers(0, 3_000), max_size=12), parts=st.integers(1, 4))
def test_every_line_once_however_the_writes_fall(cuts: list[int], parts: int) -> None:
    """The bytes arrive cut anywhere; no line is lost, doubled or read in part."""
    with tempfile.TemporaryDirectory() as folder:
        directory, tail, found, written = Path(folder), LogTail(Path(folder)), list[bytes](), 0
        for part in range(parts):
            whole = header(part) + b"".join(line(written + n) + b"\n" for n in range(90))
            written += 90
            places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
            for first, last in pairwise(places):
                with part_path(directory, part).open("ab") as file:
                    file.write(whole[first:last])
                found += all_of(tail)
        assert found == [line(number) for number in range(written)]
        assert list(tail.lines(range(written))) == found and tail.count == written
        for numbers in ([15, 16, 89], [0, 64, written - 1], [63], [written - 90, written - 1]):
            assert list(tail.lines(numbers)) == [found[number] for number in numbers]
        assert tail.fields(written - 1)["payload"] == {"n": written - 1}


def test_a_torn_line_is_not_there_until_it_is_whole(tmp_path: Path) -> None:
    """Also when the writer died, cut it off and wrote another one in its place."""
    log, tail = part_path(tmp_path, 0), LogTail(tmp_path)
    assert tail.read() == []
    log.write_bytes(header(0) + line(0) + b"\n" + b'{"kind":"torn')
    assert tail.read() == [line(0)] and tail.read() == []
    log.write_bytes(header(0) + line(0) + b"\n" + line(1) + b"\n")
    assert tail.read() == [line(1)]


def test_long_strings_are_put_back(tmp_path: Path) -> None:
    """A line that was read again is whole."""
    reference, _ = BlobStore(tmp_path).externalise({"text": "x" * 100}, 10)
    part_path(tmp_path, 0).write_bytes(header(0) + orjson.dumps({"payload": reference}) + b"\n")
    tail = LogTail(tmp_path)
    tail.read()
    assert tail.fields(0)["payload"] == {"text": "x" * 100}
