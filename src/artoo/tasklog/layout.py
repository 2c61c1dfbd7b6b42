"""File names and line format of a task's log, and its limits (size of a part, size of all, inline strings).

    <home>/tasks/<task id>/log.jsonl         header line, then one envelope a line
                           log.0001.jsonl    the next part, once the one before is full
                           blobs/<sha256>    long strings of the payloads, UTF-8
                           images/<sha256>   images attached to the request
    <home>/cache/ballast                     deleted on a full disk, to make room for a task's last message

A header is `{"artoo_task_log": 1, "task_id": …, "part": n}`. A gap, `{"gap": {"count": n, "reason": …}}`, is in
the place of missing messages. Every other line is an envelope (contracts.codec).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

LOG_VERSION = 1
HEADER_KEY = "artoo_task_log"
GAP_KEY = "gap"

_SAFE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")


@dataclass(frozen=True, slots=True)
class LogLimits:
    """The limits of one task's log in bytes. Only `inline` is in characters: it limits a string in a line of the
    log.

    When a part is full, a new part begins. When all parts and blobs together reach `total`, later messages are
    counted instead of written, except the task's last message."""

    part: int = 16 * 1024 * 1024
    total: int = 512 * 1024 * 1024
    inline: int = 64 * 1024


TASKS = "tasks"


def tasks_directory(home: Path) -> Path:
    """Return the directory of all tasks' logs."""
    return home / TASKS


def directory_name(task_id: str) -> str:
    """Return the name of a task's directory. This is the id of the task, or a hash of the id if it is no plain file
    name."""
    return task_id if _SAFE.fullmatch(task_id) else hashlib.sha256(task_id.encode("utf-8", "replace")).hexdigest()


def task_directory(home: Path, task_id: str) -> Path:
    """Return the directory of one task."""
    return home.joinpath(TASKS, directory_name(task_id))


def images_directory(home: Path, task_id: str) -> Path:
    """Return the directory of the images that belong to a task's request. The directory need not exist."""
    return task_directory(home, task_id) / "images"


def part_path(directory: Path, part: int) -> Path:
    """Return the path of a part. Parts are numbered from 0."""
    return directory / ("log.jsonl" if part == 0 else f"log.{part:04d}.jsonl")


def parts_of(directory: Path) -> list[Path]:
    """Return the paths of the parts that exist, in the order of their numbers."""
    parts: list[Path] = []
    while (path := part_path(directory, len(parts))).exists():
        parts.append(path)
    return parts
