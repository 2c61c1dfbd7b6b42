"""What is seen of a running command from outside, while it does what it likes."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

from artoo.world.held import held_by
from artoo.world.process_tree import descendants, tree_usage
from artoo.world.watch import disk_usage

MEGABYTE = 1 << 20
LOOKS = 300


def test_files_that_come_and_go_hide_nothing(tmp_path: Path) -> None:
    """A directory in which names vanish between listing and looking still counts with all that lies beside them."""
    for number in range(20):
        (tmp_path / f"below-{number}").mkdir()
        (tmp_path / f"below-{number}" / "large").write_bytes(b"x" * (MEGABYTE // 16))
    ended = Event()

    def come_and_go() -> None:
        while not ended.is_set():
            for number in range(30):
                (tmp_path / f"brief-{number}").touch()
            for number in range(30):
                (tmp_path / f"brief-{number}").unlink()

    restless = Thread(target=come_and_go)
    restless.start()
    try:
        seen = [disk_usage([tmp_path], 1 << 40, 1 << 20)[0] for _ in range(LOOKS)]
    finally:
        ended.set()
        restless.join()
    assert min(seen) >= 20 * MEGABYTE // 16


def test_a_map_that_cannot_be_looked_at_is_a_trace(tmp_path: Path) -> None:
    """It ends no watch: what the process holds there counts as far as its map tells."""
    place = tmp_path / "7"
    (place / "fd").mkdir(parents=True)
    (place / "map_files").mkdir()
    (place / "map_files" / "1000-3000").symlink_to("1000-3000")
    (place / "maps").write_text("1000-3000 rw-s 00000000 00:01 9 /memfd:x (deleted)\n")
    held = held_by([7], tmp_path)
    assert held.trace and held.memory_bytes == 0x2000


def test_a_tree_is_told_by_parents(tmp_path: Path) -> None:
    """Every process below the leader, whatever it is called, with its threads; nobody else."""
    for pid, parent, name in ((5, 1, "a"), (6, 5, "b) S 1"), (7, 6, "c"), (8, 1, "other")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} " + "0 " * 15 + "2 0\n")
    assert sorted(descendants(5, tmp_path)) == [6, 7]
    usage = tree_usage(5, tmp_path)
    assert (sorted(usage.members), usage.tasks) == ([5, 6, 7], 6)
