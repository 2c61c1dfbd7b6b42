"""What an executor remembers: everything, in order, numbered, within its model's window."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.execution import OUTPUT_KEPT, CallStatus, CorrectionSignal, ToolCall
from artoo.contracts.failure import FailureClass
from artoo.loops.fast.record import Record, kept_of_a_read, room_for_record


def call(said: str = "", **more: object) -> ToolCall:
    return ToolCall.model_validate(
        {"tool": "shell", "identity": ("shell",), "input": "make", "output": said, **more}
    )


def correction(wrong: str, to_do: str = "") -> CorrectionSignal:
    return CorrectionSignal(
        subtask_id="s",
        attempt=1,
        what_was_wrong=wrong,
        what_to_do=to_do,
        failed_criterion="c",
        failure_class=FailureClass.LOGICAL,
    )


def test_nothing_is_erased_and_nothing_is_said_twice() -> None:
    """Calls of all attempts with their numbers, each correction where it came, each text once."""
    record = Record()
    record.add(call("first", exit_code=0), ("a",))
    record.correct(correction("not that", "look at b"))
    record.add(call("second", exit_code=0), ("b",))
    record.correct(correction("nor that"))
    text = record.text(10_000)
    parts = ["[1] shell: make", "first", "Not accepted: not that", "look at b", "[2]", "second", "nor that"]
    assert [text.count(part) for part in parts] == [1] * len(parts)
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


def test_a_refused_answer_stands_beside_its_correction() -> None:
    """Once, before what was wrong with it: the last one whole as far as there is room, earlier ones cut."""
    record = Record()
    record.add(call("4", exit_code=0))
    record.correct(correction("stands nowhere: 5"), f"There are 5 {'x' * 2_000} of them.")
    whole = record.text(10_000)
    assert whole.count("There are 5") == 1 and "x" * 2_000 in whole
    assert whole.index("4") < whole.index("There are 5") < whole.index("Not accepted: stands nowhere: 5")
    assert len(record.text(2_400)) < 1_000
    record.correct(correction("stands nowhere: 6"), f"There are 6 {'y' * 2_000} of them.")
    later = record.text(10_000)
    assert "x" * 600 not in later and "There are 5" in later and "y" * 2_000 in later


def test_how_a_call_ended_is_said_as_it_was() -> None:
    """A program that ended with 1 after useful output is `exit 1` and no error; what never ran says why."""
    record = Record("/p")
    record.add(call("1 failed, 3 passed", exit_code=1, status=CallStatus.ERROR))
    record.add(call(exit_code=0, changes=("/p/site/index.html", "/q/x")))
    record.add(call(status=CallStatus.REFUSED, reason="no right to use it"))
    record.add(call(exit_code=0))
    text = record.text(10_000)
    assert "1 failed, 3 passed\nexit 1" in text and "error" not in text
    assert "ok; touched site/index.html, /q/x" in text
    assert "refused; no right to use it" in text and "ok; printed nothing" in text


def test_a_reason_that_the_error_output_gives_is_not_said_again() -> None:
    """A traceback's last line is both."""
    record = Record()
    record.add(call(status=CallStatus.ERROR, error_output="Traceback\nKeyError: 'a'\n", reason="KeyError: 'a'"))
    assert record.text(9_000).count("KeyError") == 1


def test_the_same_call_is_known_until_something_changes() -> None:
    """A test may be run again after an edit; a question that was answered is not asked again."""
    record = Record()
    record.add(call("1 failed"), ("pytest",))
    record.add(call("text"), ("cat",))
    assert (record.same(("pytest",)), record.same(("cat",)), record.same(("ls",))) == (1, 2, None)
    record.add(call(changes=("a.py",)), ("edit",))
    assert record.same(("pytest",)) is None and record.same(("edit",)) == 3
    record.add(call("[main 1a2b3c4]", bookkeeping=True), ("git commit",))
    assert record.same(("edit",)) is None


def test_what_a_call_gives_as_the_answer() -> None:
    """Its output, else what it made; a failed call gives none."""
    record = Record("/p")
    assert record.answer_of(call(" 3\n", exit_code=0)) == "3"
    assert record.answer_of(call(changes=("/p/out.json",))) == "out.json"
    assert record.answer_of(call("3", status=CallStatus.ERROR)) == "" == record.answer_of(call())


def test_the_newest_is_whole() -> None:
    """Where there is no room for all, older calls keep head and tail, and the newest everything."""
    record = Record()
    for number in range(6):
        record.add(call(f"head{number} {'x' * 3_900} tail{number}", exit_code=0))
    text = record.text(9_000)
    assert f"head5 {'x' * 3_900} tail5" in text
    assert all(f"head{number}" in text and f"tail{number}" in text for number in range(6))
    assert "characters left out" in text and len(text) < 9_500


@given(st.lists(st.text(max_size=3_000), max_size=8), st.integers(2_000, 20_000))
@settings(deadline=None, max_examples=40)
def test_the_record_fits(outputs: list[str], room: int) -> None:
    """Whatever was put out, in whatever script, the record stays near its room, and every call is in it."""
    record = Record()
    for output in outputs:
        record.add(call(output, exit_code=0))
    text = record.text(room)
    assert len(text.encode()) <= room + 500 * (len(outputs) + 1)
    assert all(f"[{number}] shell" in text for number in range(1, len(outputs) + 1))


def test_a_small_model_reads_less() -> None:
    """The room follows the window; a small model's is small whatever its window."""
    assert room_for_record(128_000, small=False) > 100_000 > room_for_record(32_768, small=False) > 50_000
    assert room_for_record(128_000, small=True) < 10_000


def test_a_look_at_a_file_shows_what_the_record_has_room_for() -> None:
    """More where the window is large, though never all of it; a small model's look is as it was."""
    assert kept_of_a_read(200_000, small=False) == kept_of_a_read(32_768, small=False) == 16_000
    assert OUTPUT_KEPT < kept_of_a_read(16_384, small=False) < 16_000
    assert kept_of_a_read(8_192, small=False) == kept_of_a_read(200_000, small=True) == OUTPUT_KEPT
