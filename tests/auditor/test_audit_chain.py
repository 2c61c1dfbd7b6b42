"""Tampering: whatever is done to the audit log, it is found, and named by file and line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trails import NOW, only_part, proved, write_chain

from artoo.auditor.chain import Head, add_encoded, link_of
from artoo.auditor.layout import ANCHORS, TrailLimits, audit_directory, chains_in
from artoo.auditor.retention import retire
from artoo.auditor.stats import Stats
from artoo.auditor.trail import Trail, encoded
from artoo.auditor.verify import verify
from artoo.tasklog.layout import tasks_directory

RECORDS = 24
Lines = list[bytes]


def lines_of(path: Path) -> Lines:
    return path.read_bytes().splitlines(keepends=True)


def changed_byte(data: st.DataObject, lines: Lines, line: int) -> tuple[Lines, int, str]:
    """One byte of a line is another one; not its end, which would join it with the next."""
    place = data.draw(st.integers(0, len(lines[line]) - 2))
    value = data.draw(st.integers(32, 126).filter(lambda value: value != lines[line][place]))
    forged = lines[line][:place] + bytes([value]) + lines[line][place + 1 :]
    return [*lines[:line], forged, *lines[line + 1 :]], line, "changed"


def removed(_: st.DataObject, lines: Lines, line: int) -> tuple[Lines, int, str]:
    what = "removed" if line < len(lines) - 1 else "cut"
    return [*lines[:line], *lines[line + 1 :]], line, what


def duplicated(_: st.DataObject, lines: Lines, line: int) -> tuple[Lines, int, str]:
    return [*lines[: line + 1], lines[line], *lines[line + 1 :]], line + 1, "added"


def moved(data: st.DataObject, lines: Lines, line: int) -> tuple[Lines, int, str]:
    to = data.draw(st.integers(0, len(lines) - 1).filter(lambda place: place != line))
    rest = [*lines[:line], *lines[line + 1 :]]
    return [*rest[:to], lines[line], *rest[to:]], min(line, to), "removed"


def cut(_: st.DataObject, lines: Lines, line: int) -> tuple[Lines, int, str]:
    return lines[:line], line, "cut"


def rewritten(data: st.DataObject, lines: Lines, line: int) -> tuple[Lines, int, str]:
    """The record says something else, and its own hash is right for it."""
    link = link_of(lines[line][:-1])
    assert link is not None
    record = orjson.dumps({**link.fields(), "forged": data.draw(st.integers(0, 99))})
    forged, _ = add_encoded(Head(link.number - 1, link.previous), record)
    return [*lines[:line], forged, *lines[line + 1 :]], line, "changed"


def rewritten_to_the_end(data: st.DataObject, lines: Lines, line: int) -> tuple[Lines, int, str]:
    """From one line on everything is written anew, so that the chain hangs together again."""
    links = [link for each in lines if (link := link_of(each[:-1])) is not None]
    head, forged = Head(links[line].number - 1, links[line].previous), list[bytes]()
    for number, link in enumerate(links[line:]):
        record = link.record if number else orjson.dumps({**link.fields(), "forged": True})
        made, head = add_encoded(head, record)
        forged.append(made)
    return [*lines[:line], *forged], line, "changed"


Tampering = Callable[[st.DataObject, Lines, int], tuple[Lines, int, str]]
KINDS: list[Tampering] = [changed_byte, removed, duplicated, moved, cut, rewritten, rewritten_to_the_end]


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_tampering_is_found_and_named(data: st.DataObject) -> None:
    """Any changed, removed, doubled, moved or cut line shows: its file, its line, and what was done."""
    with TemporaryDirectory() as place:
        home = Path(place)
        write_chain(home, RECORDS)
        path = only_part(home)
        lines = lines_of(path)
        tamper = data.draw(st.sampled_from(KINDS))
        forged, line, what = tamper(data, lines, data.draw(st.integers(0, len(lines) - 1)))
        path.write_bytes(b"".join(forged))
        first = proved(home).problems[0]
    assert (first.file, first.what) == (path, what)
    exact = tamper is not rewritten_to_the_end
    assert first.line is not None and (first.line == line + 1 if exact else first.line > line)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_tampering_with_the_anchors_is_found(data: st.DataObject) -> None:
    """The anchors are a chain too; what was cut from their end is known to the chain and to the statistics."""
    with TemporaryDirectory() as place:
        home = Path(place)
        for _ in range(2):
            write_chain(home, RECORDS)
        path = audit_directory(home) / ANCHORS
        lines = lines_of(path)
        tamper = data.draw(st.sampled_from([changed_byte, removed, duplicated, cut, rewritten]))
        forged, _, _ = tamper(data, lines, data.draw(st.integers(0, len(lines) - 1)))
        path.write_bytes(b"".join(forged))
        found = proved(home)
    # When every anchor of the last chain is gone, it looks like one from elsewhere.
    assert any(problem.file == path or problem.what == "added" for problem in found.problems)


def test_a_log_that_nobody_touched_is_whole(tmp_path: Path) -> None:
    """Several chains, each in several parts, one of a process that died: nothing is wrong with any of them."""
    small = TrailLimits(part=2_000)
    for closed in (True, False, True):
        write_chain(tmp_path, RECORDS, closed=closed, limits=small)
    found = proved(tmp_path)
    assert found.problems == []
    assert sorted(chain.ended for chain in found.chains) == ["closed", "closed", "died"]
    assert all(len(parts) > 2 for parts in chains_in(audit_directory(tmp_path)).values())
    assert sum(chain.messages for chain in found.chains) == 3 * RECORDS


@pytest.mark.parametrize("part", [0, 1, -1])
def test_a_part_that_is_gone_is_named(tmp_path: Path, part: int) -> None:
    """Whichever part of a chain is removed: the records that were in it are missed."""
    write_chain(tmp_path, RECORDS, limits=TrailLimits(part=2_000))
    ((*parts,),) = chains_in(audit_directory(tmp_path)).values()
    parts[part].unlink()
    assert {problem.what for problem in proved(tmp_path).problems} <= {"removed", "cut"}
    assert not proved(tmp_path).sound


def test_a_chain_that_is_gone_is_named(tmp_path: Path) -> None:
    """A whole file that is removed is still known to the anchors."""
    write_chain(tmp_path, RECORDS)
    path = only_part(tmp_path)
    path.unlink()
    (problem,) = proved(tmp_path).problems
    assert (problem.file, problem.what) == (path, "missing")


def test_a_chain_that_nobody_anchored_is_named(tmp_path: Path) -> None:
    """A chain from elsewhere that is put beside the others is none of ours."""
    write_chain(tmp_path, 3)
    write_chain(tmp_path / "elsewhere", 3)
    foreign = only_part(tmp_path / "elsewhere")
    foreign.rename(audit_directory(tmp_path) / foreign.name)
    assert [problem.what for problem in proved(tmp_path).problems] == ["added"]


def test_missing_anchors_are_named(tmp_path: Path) -> None:
    """Without its anchors no chain is proved."""
    write_chain(tmp_path, 3)
    anchors = audit_directory(tmp_path) / ANCHORS
    anchors.unlink()
    problems = proved(tmp_path).problems
    assert (problems[0].file, problems[0].what) == (anchors, "missing")


def test_a_copy_whose_sending_was_cut_off_is_whole(tmp_path: Path) -> None:
    """Anchors are sent after the chains: with however many of them, even none, nothing is wrong with a copy."""
    for closed in (True, False, True):
        write_chain(tmp_path, RECORDS, closed=closed)
    directory = audit_directory(tmp_path)
    anchors = directory / ANCHORS
    for lines in range(len(whole := lines_of(anchors)) + 1):
        anchors.write_bytes(b"".join(whole[:lines]))
        assert verify(directory, tasks_directory(tmp_path), copy=True).sound
        assert proved(tmp_path).sound == (lines == len(whole))
    anchors.unlink()
    assert verify(directory, tasks_directory(tmp_path), copy=True).sound
    assert not proved(tmp_path).sound


def test_a_tail_that_was_cut_after_a_crash_shows(tmp_path: Path) -> None:
    """The chain of a process that died has no closing record; its last anchor says how far it went."""
    write_chain(tmp_path, RECORDS, closed=False)
    assert proved(tmp_path).sound
    path = only_part(tmp_path)
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[:-4]))
    (problem,) = proved(tmp_path).problems
    assert (problem.file, problem.line, problem.what) == (path, len(lines) - 3, "cut")


def test_an_unfinished_last_line_is_a_crash_and_no_tampering(tmp_path: Path) -> None:
    """What a power cut leaves of a line is said, and is no proof of anything else."""
    write_chain(tmp_path, RECORDS, closed=False)
    with only_part(tmp_path).open("ab") as file:
        file.write(b'{"n":26,"prev":"')
    found = proved(tmp_path)
    assert found.sound
    assert found.chains[0].torn


def test_a_chain_that_is_being_written_is_told_from_a_dead_one(tmp_path: Path) -> None:
    """As long as its process lives a chain needs no closing record."""
    trail = Trail(audit_directory(tmp_path))
    trail.write([encoded({"type": "message", "at": NOW})], NOW)
    assert [chain.ended for chain in proved(tmp_path).chains] == ["running"]
    trail.close(NOW)
    assert [chain.ended for chain in proved(tmp_path).chains] == ["closed"]


def test_a_full_disk_costs_counted_records_and_not_the_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be written is counted, the chain says so at its next line, and stays whole."""
    trail = Trail(audit_directory(tmp_path))
    record = encoded({"type": "message", "at": NOW})
    trail.write([record], NOW)
    with monkeypatch.context() as full:
        full.setattr(os, "write", _full)
        trail.write([record] * 3, NOW)
    trail.write([record], NOW)
    trail.close(NOW)
    Stats(audit_directory(tmp_path)).note_anchors(trail.anchors, NOW)
    assert trail.lost == 3
    lost = [link_of(line[:-1]) for line in lines_of(only_part(tmp_path)) if b'"type":"lost"' in line]
    assert [link.fields()["count"] for link in lost if link is not None] == [3]
    assert proved(tmp_path).sound


def test_what_was_written_before_the_disk_was_full_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the next file of a chain cannot be made, the one before stays as it is, and the rest is counted."""
    record = encoded({"type": "message", "at": NOW, "text": "x" * 1_000})
    trail = Trail(audit_directory(tmp_path), TrailLimits(part=1_000))
    trail.write([record], NOW)
    with monkeypatch.context() as full:
        full.setattr("artoo.auditor.trail.open_for_appending", _no_room)
        trail.write([record] * 3, NOW)
    trail.write([record], NOW)
    trail.close(NOW)
    parts = [path for paths in chains_in(audit_directory(tmp_path)).values() for path in paths]
    links = [link_of(line[:-1]) for path in parts for line in lines_of(path)]
    fields = [link.fields() for link in links if link is not None]
    assert sum(one["type"] == "message" for one in fields) == 5 - trail.lost
    assert [one["count"] for one in fields if one["type"] == "lost"] == [trail.lost] and trail.lost


def _no_room(path: Path) -> int:
    raise OSError(28, "No space left on device", str(path))


def _full(descriptor: int, block: bytes) -> int:
    raise OSError(28, "No space left on device")


def test_old_chains_go_and_leave_their_anchors(tmp_path: Path) -> None:
    """Retention removes the oldest closed chains, and the anchors say that they were retired, not stolen."""
    old = [write_chain(tmp_path, RECORDS) for _ in range(3)]
    directory = audit_directory(tmp_path)
    trail = Trail(directory)
    trail.write([encoded({"type": "message", "at": NOW})], NOW)

    def retired(chain: str, head: Head) -> None:
        trail.anchor_other(chain, "retired", head, NOW)

    assert retire(directory, TrailLimits(total=1), trail.chain, NOW, retired) == 3
    trail.close(NOW)
    assert list(chains_in(directory)) == [trail.chain]
    assert proved(tmp_path).sound
    assert not set(old) & set(chains_in(directory))
