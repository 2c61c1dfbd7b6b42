"""`artoo audit verify` against somebody who knows how a chain is made: what is added or gone as a whole."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from trails import NOW, only_part, proved, write_chain

from artoo.auditor.chain import Head, add_encoded, link_of
from artoo.auditor.layout import ANCHORS, audit_directory
from artoo.auditor.stats import Stats
from artoo.auditor.trail import Trail, log_record


def forge(path: Path, record: bytes) -> None:
    """Appends a line with the right number, link and hash."""
    link = link_of(path.read_bytes().splitlines()[-1])
    assert link is not None
    line, _ = add_encoded(Head(link.number, link.hash), record)
    path.write_bytes(path.read_bytes() + line)


FORGED = [
    b'{"type":"message","at":"2026-01-01","id":"x","kind":"FinalResult","sender":"solver","task":"t"}',
    b'{"type":"log",no json}',
    b'{"type":"log","task":"t","file":"log.jsonl","points":[1]}',
    b'{"type":"log_forgotten","task":"t"}',
    b'{"type":"opened",}',
]


@pytest.mark.parametrize("record", FORGED)
def test_what_stands_behind_the_end_of_a_chain_was_added(tmp_path: Path, record: bytes) -> None:
    """A chain that was closed ends there, however well a further line hangs on it."""
    write_chain(tmp_path, 10)
    forge(only_part(tmp_path), record)
    (problem,) = proved(tmp_path).problems
    assert (problem.what, problem.line) == ("added", 13)


def test_half_a_line_behind_the_end_of_a_chain_was_added(tmp_path: Path) -> None:
    """A closed chain has no line that a crash could have left unfinished."""
    write_chain(tmp_path, 10)
    path = only_part(tmp_path)
    path.write_bytes(path.read_bytes() + b"half a li")
    (problem,) = proved(tmp_path).problems
    assert (problem.what, problem.line) == ("added", 13)


@pytest.mark.parametrize("record", FORGED[1:3])
def test_a_record_that_the_auditor_does_not_write_is_named(tmp_path: Path, record: bytes) -> None:
    """Nonsense with a right hash stops no proof; in a chain whose process died it is named as what it is."""
    write_chain(tmp_path, 10, closed=False)
    forge(only_part(tmp_path), record)
    (problem,) = proved(tmp_path).problems
    assert (problem.what, problem.line) == ("changed", 12)


def test_an_anchor_that_the_auditor_does_not_write_is_named(tmp_path: Path) -> None:
    """Nonsense with a right hash among the anchors is named."""
    write_chain(tmp_path, 10)
    path = audit_directory(tmp_path) / ANCHORS
    lines = len(path.read_bytes().splitlines())
    forge(path, b'{"at":no json}')
    (problem,) = proved(tmp_path).problems
    assert (problem.file, problem.what, problem.line) == (path, "changed", lines + 1)


def test_a_directory_with_the_name_of_a_chain_is_none(tmp_path: Path) -> None:
    """A directory among the chains is passed over."""
    write_chain(tmp_path, 10)
    (audit_directory(tmp_path) / "audit-20260101T000000000000-aaaaaaaa.jsonl").mkdir()
    assert proved(tmp_path).sound


def logged(home: Path, text: bytes) -> Path:
    """A task log that a closed chain has seen whole."""
    path = home / "tasks" / "t1" / "log.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    trail = Trail(audit_directory(home))
    trail.write([log_record("t1", "log.jsonl", (len(text), hashlib.sha256(text).hexdigest()), NOW)], NOW)
    trail.close(NOW)
    Stats(audit_directory(home)).note_anchors(trail.anchors, NOW)
    return path


LOG = b'{"artoo_task_log":1}\n{"kind":"FinalResult"}\n'


def test_a_line_added_to_a_finished_task_log_is_named(tmp_path: Path) -> None:
    """Behind what the last process wrote nothing may stand but what a resumed one says."""
    path = logged(tmp_path, LOG)
    assert proved(tmp_path).sound
    path.write_bytes(LOG + b'{"kind":"TaskResumed"}\n')
    assert proved(tmp_path).sound
    path.write_bytes(LOG + b'{"kind":"ToolCalled"}\n')
    (problem,) = proved(tmp_path).problems
    assert (problem.file, problem.what, problem.line) == (path, "added", 3)


def test_a_whole_audit_log_that_is_gone_is_missed(tmp_path: Path) -> None:
    """Tasks that came to their end were audited: without any chain the proof fails."""
    logged(tmp_path, LOG)
    shutil.rmtree(audit_directory(tmp_path))
    (problem,) = proved(tmp_path).problems
    assert (problem.file, problem.what) == (audit_directory(tmp_path), "missing")


def test_a_task_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Something else in its place is a problem like any other."""
    path = logged(tmp_path, LOG)
    path.unlink()
    path.mkdir()
    (problem,) = proved(tmp_path).problems
    assert (problem.file, problem.what) == (path, "missing")
