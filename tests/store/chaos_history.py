"""What happened, from the books and from what the workers noted, and everything that is wrong with it.

Three sources are held against each other: `transitions`, which nobody can change; the rows of tasks and letters as
they are at the end; and what each worker wrote down when the store had answered it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from artoo.agents.storage.database import Database
from artoo.agents.storage.transaction import Reading, Row


@dataclass(frozen=True, slots=True)
class Note:
    """What a worker was told: it holds `about` in this epoch, what it did with it counts, or it is refused."""

    what: Literal["claimed", "done", "refused"]
    about: str
    epoch: int
    process: int


@dataclass(frozen=True, slots=True)
class Move:
    """One transition of a task."""

    before: str | None
    after: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter as it is at the end. `answers`: the texts of all answers to it."""

    partition: str
    epoch: int
    answers: tuple[str, ...]


@dataclass(slots=True)
class History:
    """All of it. `tasks` and `letters`: the ids of all that were accepted, with what became of them."""

    tasks: dict[str, tuple[Move, ...]]
    summaries: dict[str, str]
    letters: dict[str, Letter | None]
    notes: list[Note] = field(default_factory=list[Note])

    def problems(self) -> list[str]:
        """Whatever was lost, doubled, or done in an epoch that was over; empty when nothing."""
        notes = defaultdict[str, list[Note]](list)
        for note in self.notes:
            notes[note.about].append(note)
        found: list[str] = []
        for task, moves in self.tasks.items():
            found += (f"task {task}: {what}" for what in _of_task(moves, self.summaries.get(task, ""), notes[task]))
        for name, letter in self.letters.items():
            found += (f"letter {name}: {what}" for what in _of_letter(letter, notes[name]))
        unknown = notes.keys() - self.tasks.keys() - self.letters.keys()
        return [*found, *(f"{about}: somebody worked on what was never accepted" for about in sorted(unknown))]

    def keep(self, path: Path) -> None:
        """Writes it down, for who wants to know why there are problems."""
        path.write_text(json.dumps(asdict(self)), "utf-8")


def _of_task(moves: Sequence[Move], summary: str, notes: Sequence[Note]) -> Iterable[str]:
    done = [move.epoch for move in moves if move.after == "completed"]
    handed_in = [move.epoch for move in moves if move.after == "review"]
    claims = [move.epoch for move in moves if move.after == "in_progress"]
    epochs = [move.epoch for move in moves]
    if len(done) != 1:
        yield f"completed {len(done)} times"
    if len(handed_in) != 1:
        yield f"handed in {len(handed_in)} times"
    if [move.before for move in moves] != [None, *(move.after for move in moves[:-1])]:
        yield f"its moves do not follow each other: {moves}"
    if any(later < earlier for earlier, later in pairwise(epochs)):
        yield f"a move of an earlier claim stands after one of a later: {epochs}"
    if len(claims) != len(set(claims)):
        yield f"two claims in one epoch: {claims}"
    if handed_in and summary != f"epoch {handed_in[-1]}":
        yield f"the result that stands ({summary}) is not that of epoch {handed_in[-1]}"
    yield from _of_notes(notes, set(claims), set(handed_in))


def _of_letter(letter: Letter | None, notes: Sequence[Note]) -> Iterable[str]:
    if letter is None:
        yield "it is gone"
        return
    if letter.partition != "archive":
        yield f"it lies in the {letter.partition}"
    if len(letter.answers) != 1:
        yield f"answered {len(letter.answers)} times"
    elif letter.answers[0] != f"epoch {letter.epoch}":
        yield f"its answer ({letter.answers[0]}) is not that of its last claim, {letter.epoch}"
    answered = {int(text.removeprefix("epoch ")) for text in letter.answers}
    yield from _of_notes(notes, set(range(1, letter.epoch + 1)), answered)


def _of_notes(notes: Sequence[Note], claims: set[int], counted: set[int]) -> Iterable[str]:
    """What workers were told against what is kept: of the claims, and of those whose work counted."""
    told: dict[str, set[int]] = {"claimed": set(), "done": set(), "refused": set()}
    for note in notes:
        if note.what == "claimed" and note.epoch in told["claimed"]:
            yield f"epoch {note.epoch} was given to two"
        told[note.what].add(note.epoch)
    if strange := told["claimed"] - claims:
        yield f"claims that are not on record: {strange}"
    if lost := told["done"] - counted:
        yield f"who worked in {lost} was told that it counts, and it does not"
    if stale := told["refused"] & counted:
        yield f"who worked in {stale} was told that it does not count, and it does"


def noted(place: Path) -> list[Note]:
    """What workers wrote below `place`; a line that a kill cut is none."""
    found: list[Note] = []
    for path in place.glob("*/*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            with suppress(json.JSONDecodeError):
                found.append(Note(**json.loads(line)))
    return found


async def history(database: Database, notes: list[Note], tasks: Iterable[str], letters: Iterable[str]) -> History:
    """What became of these tasks and letters."""

    def work(reading: Reading) -> History:
        moves = _by(reading.all("SELECT * FROM transitions ORDER BY position"), "board_task")
        rows = {row["id"]: row for row in reading.all("SELECT id, partition, epoch FROM mails")}
        answers = _by(
            reading.all("SELECT in_reply_to, text FROM mails WHERE in_reply_to IS NOT NULL"), "in_reply_to"
        )
        summaries = reading.all("SELECT id, summary FROM tasks")
        return History(
            {task: tuple(Move(row["before"], row["after"], row["epoch"]) for row in moves[task]) for task in tasks},
            {row["id"]: row["summary"] for row in summaries},
            {
                letter: Letter(
                    rows[letter]["partition"], rows[letter]["epoch"], tuple(row["text"] for row in answers[letter])
                )
                if letter in rows
                else None
                for letter in letters
            },
            notes,
        )

    return await database.read(work)


def _by(rows: Iterable[Row], column: str) -> defaultdict[str, list[Row]]:
    found = defaultdict[str, list[Row]](list)
    for row in rows:
        found[row[column]].append(row)
    return found
