"""Failed traces of others: the first thing that code can hold against one."""

from __future__ import annotations

from pathlib import Path

from benchmarks.public.blame import BOTH, EXPERIMENT, FACTS, GROUNDING, Said, Trace, blamed
from lab.conducting import Order, conduct


def trace(*said: tuple[str, str], step: int = 1, agent: str = "Solver") -> Trace:
    history = [Said(name=name, role="user", content=content) for name, content in said]
    return Trace(question="How many of the 12 stones?", history=history, mistake_agent=agent, mistake_step=step)


def test_the_step_before_a_failed_program_is_named() -> None:
    """Its author wrote it; one that ended with 0 names nobody."""
    failed = (("Solver", "```python\nprint(99)\n```"), ("Computer_terminal", "exitcode: 1 (failed)\nNameError"))
    found = blamed(trace(("Manager", "count"), *failed))
    assert (found.first[FACTS], found.first[BOTH]) == (1, 1)
    good = (("Solver", "```python\nprint(99)\n```"), ("Computer_terminal", "exitcode: 0 (succeeded)\n99"))
    assert blamed(trace(("Manager", "count"), *good)).first[FACTS] is None


def test_the_first_number_from_nowhere_is_named() -> None:
    """What was printed or asked grounds it; code is no claim."""
    printed = ("Computer_terminal", "exitcode: 0 (succeeded)\n7")
    found = blamed(
        trace(("Manager", "count"), ("Solver", "12 it is"), printed, ("Solver", "7"), ("Solver", "it is 415"))
    )
    assert found.first[GROUNDING] == 4 and found.speakers[4] == "Solver"


def test_traces_are_judged_from_a_folder(tmp_path: Path) -> None:
    """Every claim has its finding, and numbers that are written as words of JSON are read."""
    for number in range(12):
        text = trace(("Manager", "count"), ("Solver", f"it is {number}415")).model_dump_json()
        (tmp_path / f"{number}.json").write_text(text.replace('"mistake_step":1', '"mistake_step":"1"'))
    ran = conduct(Order("blame", data=tmp_path), told=lambda _: None)
    assert tuple(each.claim for each in ran.outcome.findings) == EXPERIMENT.claims
    assert all(each.holds for each in ran.outcome.findings)
