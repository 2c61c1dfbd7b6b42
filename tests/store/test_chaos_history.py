"""The checker of the chaos runs finds what it is there for: every kind of damage, planted into a good history."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from subprocess import PIPE, Popen

import pytest
from chaos_history import History, Letter, Move, Note
from chaos_network import Network, NoNamespaces, Way

MOVES = (
    Move(None, "pending", 0),
    Move("pending", "in_progress", 1),
    Move("in_progress", "blocked", 1),
    Move("blocked", "in_progress", 2),
    Move("in_progress", "review", 2),
    Move("review", "completed", 2),
)


def good() -> History:
    """A task that was taken back from its first worker, and a letter that was."""
    notes = [
        Note("claimed", "t", 1, 11),
        Note("claimed", "t", 2, 12),
        Note("refused", "t", 1, 11),
        Note("done", "t", 2, 12),
        Note("claimed", "l", 1, 11),
        Note("claimed", "l", 2, 12),
        Note("done", "l", 2, 12),
        Note("refused", "l", 1, 11),
    ]
    return History({"t": MOVES}, {"t": "epoch 2"}, {"l": Letter("archive", 2, ("epoch 2",))}, notes)


def test_a_good_history_has_no_problems() -> None:
    """Work that was taken back and done by another is as it should be."""
    assert good().problems() == []


def lose_task(found: History) -> None:
    found.tasks["t"] = MOVES[:-2]


def complete_twice(found: History) -> None:
    found.tasks["t"] = (*MOVES, Move("completed", "completed", 2))


def skip_a_move(found: History) -> None:
    found.tasks["t"] = (*MOVES[:2], *MOVES[3:])


def act_late(found: History) -> None:
    found.tasks["t"] = (*MOVES[:4], Move("in_progress", "review", 1), MOVES[5])


def claim_twice(found: History) -> None:
    found.notes.append(Note("claimed", "t", 2, 13))


def claim_off_record(found: History) -> None:
    found.notes.append(Note("claimed", "t", 3, 13))


def overwrite(found: History) -> None:
    found.summaries["t"] = "epoch 1"


def promise_both(found: History) -> None:
    found.notes.append(Note("done", "t", 1, 11))


def refuse_both(found: History) -> None:
    found.notes.append(Note("refused", "t", 2, 12))


def lose_letter(found: History) -> None:
    found.letters["l"] = None


def leave_letter(found: History) -> None:
    found.letters["l"] = Letter("inbox", 2, ())


def answer_twice(found: History) -> None:
    found.letters["l"] = Letter("archive", 2, ("epoch 2", "epoch 2"))


def answer_late(found: History) -> None:
    found.letters["l"] = Letter("archive", 2, ("epoch 1",))


def invent(found: History) -> None:
    found.notes.append(Note("claimed", "x", 1, 11))


DAMAGE = (
    lose_task, complete_twice, skip_a_move, act_late, claim_twice, claim_off_record, overwrite, promise_both,
    refuse_both, lose_letter, leave_letter, answer_twice, answer_late, invent,
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found(damage: Callable[[History], None]) -> None:
    """Each kind of loss, doubling and stale effect is named."""
    found = good()
    damage(found)
    assert found.problems()


LISTENING = """
import socket, sys
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("0.0.0.0", 7)); own.settimeout(1.0); print("ready", flush=True)
sys.stdin.readline()  # by now it was sent
try: print(own.recv(9).decode())
except TimeoutError: print("lost")
"""
SAYING = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'came', (sys.argv[1], 7))"


def passes(sender: list[str], receiver: list[str], address: str) -> bool:
    """Whether a datagram arrives."""
    with Popen([*receiver, sys.executable, "-c", LISTENING], stdin=PIPE, stdout=PIPE, text=True) as listening:
        assert listening.stdin is not None
        assert listening.stdout is not None
        assert listening.stdout.readline() == "ready\n"
        subprocess.run([*sender, sys.executable, "-c", SAYING, address], check=True)
        said, _ = listening.communicate("\n")
        return said == "came\n"


@pytest.mark.torture  # so are the tests that cut
def test_a_cut_is_of_the_way_that_it_says() -> None:
    """What a machine sends, what it is sent, or both: the other way stays open, and a mended one is open again."""
    try:
        network = Network.made(1)
    except NoNamespaces as error:
        pytest.skip(str(error))
    with network:
        machine, server = network.at_machine(0), network.at_server()

        def open_ways() -> tuple[bool, bool]:
            return passes(machine, server, network.server), passes(server, machine, "10.77.0.2")

        def opens() -> bool:
            """A link that was switched on again loses what is sent at first: its neighbours must be found anew."""
            return any(open_ways() == (True, True) for _ in range(20))

        assert opens()
        expected: dict[Way, tuple[bool, bool]] = {"out": (False, True), "in": (True, False), "both": (False, False)}
        for way, ways in expected.items():
            network.cut(0, way)
            assert open_ways() == ways
            network.mend(0, way)
            assert opens()
