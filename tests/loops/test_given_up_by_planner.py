"""What a part did not do stands nowhere as done, and the planner may say that the rest cannot be done."""

from __future__ import annotations

from scenario import (
    Json,
    Script,
    World,
    judged,
    matches,
    merged,
    moves,
    plan,
    replan,
    reply,
    says,
    shell,
    subtask,
    write,
)

from artoo.contracts.findings import Found, Reason
from artoo.contracts.solution import PlanDirective, StoppedBy
from artoo.testing import with_body

_REQUEST = "Write hi to a.txt, and then push main to origin."
_PUSHED = "main was pushed to origin"
_FAILED = "The push failed: 'origin' does not appear to be a git repository."
_HOLDS: Json = {"text": "a.txt holds hi", "check": {"check": "file_matches", "path": "a.txt", "regex": "hi"}}


def script(second: Json) -> Script:
    """Two parts, of which the second says that it failed, and stands by it; then `second` is the next plan."""
    verdict = {"number": 1, "quote": "does not appear", "verdict": "fail", "failure_class": "environmental"}
    parts = (subtask("Write hi to a.txt."), subtask("Push main to origin.", sequence=2))
    first: Json = {"subtasks": list(parts), "task_criteria": [_HOLDS, _PUSHED]}
    said = "fatal: 'origin' does not appear to be a git repository"
    push = f'python3 -c "import os; os.write(2, b\\"{said}\\"); os._exit(128)"'
    return {
        "Plan": [first, second],
        "ExecutorStep": [write("a.txt", "hi\n"), shell(push, final=False), says(_FAILED), says(_FAILED)],
        "ValidationReport": judged(("pass", "does not appear")),
        "MergeReport": with_body({"sources": [1, 2], "verdicts": [verdict]}, f"a.txt holds hi. {_FAILED}", "text"),
    }


async def test_a_planner_says_that_the_rest_cannot_be_done(world: World) -> None:
    """A reply does nothing: what the world refused stays unmet, what is met is not called unmet, and it ends so."""
    said = f"a.txt holds hi. {_FAILED} Add a remote first."
    ended = await world.play(_REQUEST, script(reply(said)))
    assert (ended.directive, ended.result.stopped_by) == ("abandon", StoppedBy.MISSING_INPUT)
    assert [each.criterion for each in ended.result.unmet] == [_PUSHED]
    assert ended.result.output.endswith(said), "what stands comes with it"
    assert len(ended.asked("Plan")) == 2
    assert ended.told.startswith("As far as artoo has seen, it cannot be done")


async def test_a_reply_about_what_no_call_has_shown_is_still_refused(world: World) -> None:
    """It is grounded by the calls of earlier rounds, and by nothing else; a check decides its own criterion."""
    world.file("b.txt", "x\n")
    told = {**script(reply("b.txt has 77 lines.")), "FailureReport": moves()}
    ended = await world.play(_REQUEST, told, config=world.config(control={"max_replans": 1}))
    (unmet,) = ended.result.unmet
    assert (unmet.criterion, unmet.found) == (_PUSHED, Reason(found=Found.NOT_LOOKED_UP, said="77"))


async def test_a_reply_where_checks_decide_everything_is_held_to_the_request(world: World) -> None:
    """No check reads what it says: the request itself stands open."""
    script = {"Plan": [plan(subtask("say it", matches("^42$"))), reply("42")], "ExecutorStep": shell("echo 41")}
    ended = await world.play("Say it.", script, config=world.config(control={"max_retries": 0}))
    assert (ended.directive, ended.result.open) == ("success", ("Say it.",))


async def test_a_part_that_did_nothing_is_not_told_as_done(world: World) -> None:
    """Where something is unmet, what is nothing but its author's word may be what is missing. It is told as a
    claim, and its words are no result of the end, where another part has done it.
    """
    files = {"a.cfg": "2", "b.cfg": "3"}
    holds: list[Json] = [
        {"text": f"{name} has v={value}", "check": {"check": "file_matches", "path": name, "regex": f"^v={value}$"}}
        for name, value in files.items()
    ]
    for name in files:
        world.file(name, "v=1\n")
    set_a, set_b = (subtask(f"Set v to {value} in {name}.") for name, value in files.items())
    script: Script = {
        "Plan": [{"subtasks": [set_a, {**set_b, "sequence": 2}], "task_criteria": holds}, replan(set_b)],
        "ExecutorStep": [
            shell("echo v=2 > a.cfg; cat a.cfg"),
            says("v is 3 there now."),
            shell("echo v=3 > b.cfg; cat b.cfg"),
        ],
        "MergeReport": merged("v is 2 in a.cfg and 3 in b.cfg."),
    }
    ended = await world.play("Set v to 2 in a.cfg and to 3 in b.cfg", script)
    assert [each.intent for each in ended.one(PlanDirective).standing] == ["Set v to 2 in a.cfg."]
    prompt = ended.asked("Plan")[1].user
    claimed, _, done = prompt.partition("Done already")
    assert "Claimed, no call shows it; plan it again if it is needed: Set v to 3 in b.cfg.: v is 3 there" in claimed
    assert "Set v to 2 in a.cfg." in done and "Set v to 3" not in done
    assert (ended.directive, ended.result.open, ended.result.assurance) == ("accept", (), "checked")
    assert "v is 3 there now." not in ended.asked("MergeReport")[-1].user
