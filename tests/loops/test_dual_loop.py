"""The two loops end to end: a real server, a real stream, real tools, and only the words are scripted."""

from __future__ import annotations

from scenario import (
    Each,
    Json,
    World,
    gives_up,
    judged,
    matches,
    merged,
    moves,
    plan,
    python,
    read,
    replan,
    says,
    shell,
    subtask,
)

from artoo.contracts.execution import CorrectionSignal, SubTaskOutcome
from artoo.contracts.plan import DispatchManifest, Plan, PlanRefused, SubTask
from artoo.contracts.solution import Decided, OutcomeSummary, PlanDirective, ReplanRequest

COUNT = "How many lines has a.txt?"


async def test_two_calls_are_enough_where_code_decides(world: World) -> None:
    """A one-subtask task whose criteria code can decide is accepted after exactly two model calls."""
    world.file("a.txt", "x\ny\nz\n")
    script = {"Plan": plan(subtask("count", tool="shell")), "ExecutorStep": shell("wc -l < a.txt")}
    ended = await world.play(COUNT, script)
    assert (ended.directive, ended.result.summary) == ("accept", "3")
    assert ended.contracts == ["Plan", "ExecutorStep"]
    assert ended.result.cost.llm_calls == len(ended.requests) == 2
    assert ended.result.loss.D == 0.0


async def test_strict_roles_make_five_calls(world: World) -> None:
    """With `strict_roles` every role of the paper's chain calls its model once: five calls."""
    world.file("a.txt", "x\ny\nz\n")
    script = {
        "TaskSpec": {"intent": COUNT},
        "Plan": plan(subtask("count", tool="shell")),
        "ExecutorStep": shell("wc -l < a.txt"),
        "ValidationReport": judged(("pass", "3")),
        "MergeReport": merged("3", ("pass", "3"), sources=[1]),
    }
    ended = await world.play(COUNT, script, options=world.options(strict_roles=True))
    assert ended.directive == "accept"
    assert ended.contracts == ["TaskSpec", "Plan", "ExecutorStep", "ValidationReport", "MergeReport"]


async def test_groups_run_together_and_feed_the_next(world: World) -> None:
    """Subtasks of one sequence start together; those of the next start after both and know what they found."""
    world.file("one.txt", "a\nb\n")
    world.file("two.txt", "c\n")
    script = {
        "Plan": plan(
            subtask("count all lines in one", tool="shell"),
            subtask("count all lines in two", tool="shell"),
            subtask("add both of them up", tool="shell", sequence=2),
        ),
        "ExecutorStep": Each.of(
            in_one=shell("wc -l < one.txt"),
            in_two=shell("wc -l < two.txt"),
            add_both=shell("cat one.txt two.txt | wc -l"),
        ),
    }
    ended = await world.play("How many lines have one.txt and two.txt together?", script)
    assert ended.directive == "accept"
    order = [envelope.kind for envelope in ended.envelopes if envelope.kind in ("SubTask", "SubTaskOutcome")]
    assert order == ["SubTask", "SubTask", "SubTaskOutcome", "SubTaskOutcome", "SubTask", "SubTaskOutcome"]
    last = ended.all(SubTask)[-1]
    assert "count all lines in one: 2" in last.context and "count all lines in two: 1" in last.context
    assert ended.result.output == "3"


async def test_a_failing_group_finishes_and_the_next_does_not_start(world: World) -> None:
    """Siblings of a failing subtask run to their end; later groups do not start, and count as not run."""
    world.file("one.txt", "a\n")
    script = {
        "Plan": plan(
            subtask("read nothing at all", matches("zzz"), tool="shell"),
            subtask("read the file one", tool="shell"),
            subtask("read it some time later", matches("q"), matches("r"), tool="shell", sequence=2),
        ),
        "ExecutorStep": Each.of(
            nothing=[read("zzz.txt", final=False), gives_up("no idea")], file_one=[shell("cat one.txt")]
        ),
        "ValidationReport": MORE_TO_TRY,
        "FailureReport": moves("try this"),
    }
    config = world.config(control={"max_retries": 0, "max_replans": 1, "theta": 0.0})
    ended = await world.play("How many lines have all files?", script, config=config)
    request = ended.one(ReplanRequest)
    assert [outcome.status for outcome in request.outcomes] == ["failed", "matched"]
    assert (request.not_run, ended.directive, ended.result.stopped_by) == (2, "abandon", "cost")
    assert ended.result.done == ("read the file one",)
    assert ended.result.next_moves == ("try this",)


async def test_two_corrections_then_the_outcome(world: World) -> None:
    """An unmet criterion is corrected at most twice; the outcome then carries all three attempts."""
    world.file("a.txt", "no\n")
    world.file("b.txt", "yes\n")
    script = {
        "Plan": [
            plan(subtask("look", matches("yes"), tool="shell")),
            replan(subtask("look at b", tool="read_file")),
        ],
        "ExecutorStep": [
            shell("cat a.txt"),
            python("print(open('a.txt').read())"),
            shell("cat ./a.txt"),
            read("b.txt"),
        ],
    }
    ended = await world.play("Show the word.", script)
    failed, matched = ended.all(SubTaskOutcome)
    assert [point.attempt for point in failed.gap_trajectory] == [1, 2, 3]
    assert (failed.corrections, failed.status, matched.status) == (2, "failed", "matched")
    assert failed.criteria_verdicts[0].failed_attempts == failed.criteria_verdicts[0].attempts == 3
    signals = ended.all(CorrectionSignal)
    assert [signal.attempt for signal in signals] == [1, 2]
    assert ended.directives == ["break_symmetry", "accept"]
    first, second, third, _ = ended.asked("ExecutorStep")
    assert "Not accepted" not in first.user
    assert "[1] ok\nno" in second.user and "no match of 'yes'" in second.user
    assert third.user.index("[1] ok") < third.user.index("Not accepted") < third.user.index("[2] ok")
    assert third.user.count("Not accepted") == 2 and first.system == second.system == third.system


async def test_a_correction_that_helps_ends_in_accept(world: World) -> None:
    """A subtask that is right at its second attempt matches; one failed attempt is in its record."""
    world.file("a.txt", "yes\n")
    script = {
        "Plan": plan(subtask("look", matches("yes"), tool="shell")),
        "ExecutorStep": [shell("echo maybe"), python("print(open('a.txt').read())")],
    }
    ended = await world.play("Show the word.", script)
    outcome = ended.one(SubTaskOutcome)
    assert ended.directive == "accept"
    assert [point.score for point in outcome.gap_trajectory] == [0.0, 1.0]
    assert outcome.criteria_verdicts[0].failed_attempts == 1


MORE_TO_TRY = judged(("fail", ""))
"""The judge's answer to a worker that gave up too early."""
WORDS = plan(subtask("show", matches("alpha"), matches("beta"), tool="shell"))
NO_RETRY: Json = {"max_retries": 0}


def words(world: World) -> None:
    world.file("none.txt", "zero\n")
    world.file("half.txt", "alpha\n")
    world.file("all.txt", "alpha beta\n")


async def test_plateau_of_a_wrong_approach_breaks_symmetry(world: World) -> None:
    """First round, all failures logical: `break_symmetry`, and the tool that failed is blocked."""
    words(world)
    script = {
        "Plan": [WORDS, replan(subtask("read all", tool="read_file"))],
        "ExecutorStep": [shell("cat none.txt"), read("all.txt")],
    }
    ended = await world.play("Show the words.", script, config=world.config(control=NO_RETRY))
    assert ended.directives == ["break_symmetry", "accept"]
    directive = ended.one(PlanDirective)
    assert (directive.prev_directive, directive.loss.D, directive.loss.P, directive.grad_l) == (
        "init",
        1.0,
        1.0,
        0.0,
    )
    assert directive.blocked_tools == ("shell:cat",)
    assert "Plan a different approach" in ended.asked("Plan")[1].user
    assert ended.result.replans == 1 and ended.result.prev_directive == "break_symmetry"


async def test_a_moving_wrong_approach_is_changed(world: World) -> None:
    """Loss that moves while failures are logical: `change_approach`, told to keep what works."""
    words(world)
    script = {
        "Plan": [WORDS, replan(subtask("read half", tool="read_file")), replan(subtask("run", tool="python"))],
        "ExecutorStep": [shell("cat none.txt"), read("half.txt"), python("print(open('all.txt').read())")],
    }
    ended = await world.play("Show the words.", script, config=world.config(control=NO_RETRY))
    assert ended.directives == ["break_symmetry", "change_approach", "accept"]
    directive = ended.all(PlanDirective)[1]
    assert directive.suspicious and directive.grad_l < -0.1
    assert "nearer than in the round before" in ended.asked("Plan")[2].user
    assert directive.blocked_tools == ("shell:cat", "read_file")


async def test_plateau_of_a_blocked_path_changes_the_path(world: World) -> None:
    """First round, the world did not cooperate: `change_path`, which blocks the path and no tool."""
    words(world)
    script = {
        "Plan": [WORDS, replan(subtask("read all", tool="read_file"))],
        "ExecutorStep": [read("gone.txt", final=False), gives_up("gone.txt is not there"), read("all.txt")],
        "ValidationReport": MORE_TO_TRY,
    }
    ended = await world.play("Show the words.", script, config=world.config(control=NO_RETRY))
    assert ended.directives == ["change_path", "accept"]
    directive = ended.one(PlanDirective)
    assert (directive.failure_class, directive.blocked_tools) == ("environmental", ())
    assert directive.blocked_targets == (("read_file", "gone.txt"),)


async def test_a_moving_blocked_path_is_refined(world: World) -> None:
    """Loss that moves while failures are environmental: `refine`."""
    words(world)
    listed: Json = {"text": "notes can be listed", "mode": "verifiable"}
    refused = "test -e notes.txt || { echo 'notes: Connection refused'; exit 1; }"
    listed["check"] = {"check": "command_succeeds", "command": refused}
    script = {
        "Plan": [
            plan(subtask("show", matches("alpha"), listed, tool="shell")),
            replan(subtask("read half", tool="read_file")),
            replan(subtask("make notes", tool="write_file")),
        ],
        "ExecutorStep": [
            read("gone.txt", final=False),
            gives_up("gone.txt is not there"),
            read("half.txt"),
            shell("cp half.txt notes.txt", final=False),
            read("half.txt"),
        ],
        "ValidationReport": MORE_TO_TRY,
    }
    ended = await world.play(
        "Show the words, and make notes of them.", script, config=world.config(control=NO_RETRY)
    )
    assert ended.directives == ["change_path", "refine", "accept"]
    directive = ended.all(PlanDirective)[1]
    assert (directive.loss.P, directive.failure_class, directive.blocked_tools) == (0.0, "environmental", ())
    assert directive.grad_l < -0.1


async def test_near_enough_is_a_success_that_names_what_is_missing(world: World) -> None:
    """D ≤ δ with something matched and every task criterion met: `success`, naming the unmet criterion."""
    for number in range(4):
        world.file(f"f{number}.txt", "x\n" * number)
    parts = [subtask(f"take the part {n}", matches(r"\d", f"{n} is a number"), tool="shell") for n in range(4)]
    lost = subtask("take the part lost", matches("never", "the lost part says never"), tool="shell")
    script = {
        "Plan": plan(*parts, lost),
        "ExecutorStep": Each.of(
            **{f"part_{number}": shell(f"wc -l < f{number}.txt") for number in range(4)},
            part_lost=[read("lost.txt", final=False), gives_up("lost.txt is missing")],
        ),
        "ValidationReport": MORE_TO_TRY,
    }
    ended = await world.play("How many lines has each file?", script, config=world.config(control=NO_RETRY))
    assert ended.directives == ["success"]
    assert [unmet.criterion for unmet in ended.result.unmet] == ["the lost part says never"]
    assert "Not met: the lost part says never" in ended.told
    assert ended.result.loss.D == 1 / 6
    assert len(ended.result.done) == 4


async def test_strict_takes_nothing_but_everything(world: World) -> None:
    """With `strict` (δ = 0) the same near miss goes on to another round."""
    for number in range(4):
        world.file(f"f{number}.txt", "x\n" * number)
    parts = [subtask(f"take the part {n}", matches(r"\d", f"{n} is a number"), tool="shell") for n in range(4)]
    lost = subtask("take the part lost", matches("^3"), tool="shell")
    script = {
        "Plan": [plan(*parts, lost), replan(subtask("the part found", tool="shell"))],
        "ExecutorStep": Each.of(
            **{f"part_{number}": shell(f"wc -l < f{number}.txt") for number in range(4)},
            part_lost=[read("lost.txt", final=False), gives_up("lost.txt is missing")],
            part_found=shell("grep -c x f3.txt"),
        ),
        "ValidationReport": MORE_TO_TRY,
        "MergeReport": merged("0, 1, 2 and 3", sources=[1, 2, 3, 4, 5]),
    }
    ended = await world.play(
        "How many lines has each file?",
        script,
        config=world.config(control=NO_RETRY),
        options=world.options(strict=True),
    )
    assert ended.directives == ["change_path", "accept"]


async def test_worsening_twice_ends_the_task(world: World) -> None:
    """Law 2: loss that grows in two consecutive rounds ends the task whatever the budget."""
    world.file("r1.txt", "alpha beta\n")
    world.file("r2.txt", "alpha\n")
    world.file("r3.txt", "zero\n")
    first = plan(subtask("show", matches("alpha"), matches("beta"), matches("gamma"), tool="shell"))
    script = {
        "Plan": [first, replan(subtask("read", tool="read_file")), replan(subtask("run", tool="python"))],
        "ExecutorStep": [shell("cat r1.txt"), read("r2.txt"), python("print(open('r3.txt').read())")],
        "FailureReport": moves("say where gamma is"),
    }
    config = world.config(control={**NO_RETRY, "max_replans": 10})
    ended = await world.play("Show the words.", script, config=config)
    assert ended.directives == ["break_symmetry", "change_approach", "abandon"]
    assert [decided.worsening_rounds for decided in ended.all(Decided)] == [0, 1, 2]
    assert ended.result.stopped_by == "divergence"
    assert "say where gamma is" in ended.told
    assert [unmet.criterion.split()[-1] for unmet in ended.result.unmet] == ["alpha", "beta", "gamma"]


async def test_replans_run_out(world: World) -> None:
    """After max_replans R4b recommends to abandon, and R7 delivers what was reached and what was not."""
    words(world)
    script = {
        "Plan": [WORDS, replan(subtask("read none", tool="read_file"))],
        "ExecutorStep": [shell("cat none.txt"), read("none.txt")],
        "FailureReport": moves(),
    }
    ended = await world.play(
        "Show the words.", script, config=world.config(control={**NO_RETRY, "max_replans": 1, "w1": 0.1})
    )
    assert ended.directives == ["break_symmetry", "abandon"]
    assert [request.recommendation for request in ended.all(ReplanRequest)] == ["replan", "abandon"]
    assert ended.result.stopped_by == "replans"
    assert len(ended.result.unmet) == 2
    assert ended.result.tried == ("shell: cat none.txt → ok", "read_file: none.txt → ok")
    assert ended.result.cost.tool_calls == 2
    assert ended.told.endswith("\n- say more precisely what is wanted, or where it is")


async def test_what_stands_is_carried_not_redone(world: World) -> None:
    """A replan plans what is missing: the matched subtask is not run again, and its output is fed and merged."""
    world.file("one.txt", "first\n")
    world.file("two.txt", "second 2\n")
    script = {
        "Plan": [
            plan(
                subtask("read the file one", tool="shell"),
                subtask("read the file two", matches("second"), tool="shell"),
            ),
            replan(subtask("fetch number two", matches("second"), tool="read_file")),
        ],
        "ExecutorStep": Each.of(
            file_one=shell("cat one.txt"),
            file_two=[read("2.txt", final=False), gives_up("2.txt is not there")],
            fetch_number_two=read("two.txt"),
        ),
        "ValidationReport": MORE_TO_TRY,
        "MergeReport": merged("first, and second 2"),
    }
    ended = await world.play("How many words are in one and two?", script, config=world.config(control=NO_RETRY))
    assert ended.directives == ["change_path", "accept"]
    first, second = ended.all(DispatchManifest)
    assert second.carried == (first.subtasks[0].subtask_id,) and len(second.subtasks) == 1
    assert [call.input for call in ended.calls if call.tool == "shell"] == ["cat one.txt"]
    assert "read the file one: first" in ended.all(SubTask)[-1].context
    assert "Done already" in ended.asked("Plan")[1].user
    assert ended.result.output == ended.result.summary == "first, and second 2"
    assert ended.result.done == ("read the file one", "fetch number two")
    assert len(ended.one(OutcomeSummary).outcomes) == 2


async def test_a_task_criterion_can_reject_what_all_subtasks_met(world: World) -> None:
    """All subtasks matched, the whole not: R4b asks for a replan, and R7 does not accept."""
    world.file("one.txt", "1\n")
    script = {
        "Plan": [
            plan(
                subtask("take the part a", tool="shell"),
                subtask("take the part b", tool="shell"),
                criteria=[matches("sum: 2")],
            ),
            replan(subtask("the part sum", tool="python")),
        ],
        "ExecutorStep": Each.of(
            part_a=shell("cat one.txt"),
            part_b=shell("cat ./one.txt"),
            part_sum=python("print('sum:', len(open('one.txt').read()))"),
        ),
        "MergeReport": [merged("1 and 1"), merged("sum: 2", sources=[3])],
    }
    ended = await world.play("Show it.", script, config=world.config(control=NO_RETRY))
    request = ended.one(ReplanRequest)
    assert {outcome.status for outcome in request.outcomes} == {"matched"}
    assert [verdict.verdict for verdict in request.task_verdicts] == ["fail"]
    assert ended.directives == ["break_symmetry", "accept"]


async def test_a_refused_plan_is_repaired_once(world: World) -> None:
    """A plan that the validator refuses comes back to the model with the reasons; the repaired one runs."""
    world.file("one.txt", "1\n")
    bad = plan(*(subtask(f"wish for part {number}", tool="shell") for number in range(9)))
    script = {"Plan": [bad, plan(subtask("read", tool="shell"))], "ExecutorStep": shell("wc -l < one.txt")}
    ended = await world.play("How many lines has one.txt?", script)
    assert ended.directives == ["accept"]
    repair = ended.asked("Plan")[1]
    assert "at most 8" in repair.user
    assert len(ended.all(Plan)) == 1


async def test_a_twice_refused_plan_is_a_logical_failure(world: World) -> None:
    """Two refusals make a round with D = 1 and P = 1, and the next round plans anew."""
    world.file("one.txt", "1\n")
    bad: dict[str, object] = {"subtasks": [], "reply": ""}
    script = {
        "Plan": [bad, bad, bad, bad, plan(subtask("read", tool="shell"))],
        "ExecutorStep": shell("wc -l < one.txt"),
    }
    ended = await world.play("How many lines has one.txt?", script)
    first = ended.all(Decided)[0]
    assert (first.loss.D, first.loss.P, first.directive) == (1.0, 1.0, "break_symmetry")
    assert "a plan needs subtasks, or a reply" in ended.one(PlanRefused).reasons[0]
    assert ended.directives == ["break_symmetry", "accept"]


async def test_blocked_tools_are_refused_by_the_tool_layer(world: World) -> None:
    """A blocked program is refused when the executor tries it all the same; another way is open."""
    words(world)
    script = {
        "Plan": [WORDS, replan(subtask("read all", tool="shell"))],
        "ExecutorStep": [shell("cat none.txt"), shell("cat all.txt", final=False), shell("head all.txt")],
    }
    ended = await world.play("Show the words.", script, config=world.config(control=NO_RETRY))
    refused = ended.calls[1]
    assert refused.status == "refused" and "shell:cat is blocked" in (refused.reason or "")
    assert ended.all(SubTask)[1].must_not.tools == ("shell:cat",)
    assert ended.directive == "accept"


async def test_a_plan_with_a_blocked_tool_is_told_as_that(world: World) -> None:
    """A planner that insists on a blocked tool: the user hears which tool it was, and nothing about the model."""
    words(world)
    insists = replan(subtask("read again", tool="read_file"))
    script = {
        "Plan": [plan(subtask("read", matches("alpha"), tool="read_file")), *[insists] * 6],
        "ExecutorStep": read("none.txt"),
        "FailureReport": moves("read another file"),
    }
    ended = await world.play("Show the words.", script, config=world.config(control=NO_RETRY))
    assert ended.all(PlanDirective)[0].blocked_tools == ("read_file",)
    assert "subtask 1 uses read_file, which must not be used" in ended.asked("Plan")[2].user
    assert ended.directive == "abandon"
    assert "read_file" in ended.told and "stronger model" not in ended.told


async def test_blocked_targets_are_refused_in_plan_and_call(world: World) -> None:
    """A target that failed is refused in the next plan, and by the tool layer when it is called all the same."""
    words(world)
    script = {
        "Plan": [
            WORDS,
            replan(subtask("read gone.txt again", tool="read_file")),
            replan(subtask("read all", tool="read_file")),
        ],
        "ExecutorStep": [
            read("gone.txt", final=False),
            shell("exit 3", final=False),
            says("That is all.", 2),
            read("./gone.txt", final=False),
            read("all.txt"),
        ],
    }
    ended = await world.play("Show the words.", script, config=world.config(control=NO_RETRY))
    assert ended.directives == ["break_symmetry", "accept"]
    assert "'gone.txt' with read_file, which failed before" in ended.asked("Plan")[2].user
    assert ended.calls[2].status == "refused" and "blocked for 'gone.txt'" in (ended.calls[2].reason or "")
    assert ended.directive == "accept"


async def test_a_judge_decides_what_code_cannot(world: World) -> None:
    """A plausible criterion costs one call for the subtask, none for the task that the same words cover."""
    world.file("one.txt", "the sky is blue\n")
    script = {
        "Plan": plan(subtask("read", "it says what colour the sky has", tool="shell")),
        "ExecutorStep": shell("cat one.txt"),
        "ValidationReport": judged(("pass", "the sky is blue")),
    }
    ended = await world.play("Show one.txt", script)
    assert ended.contracts == ["Plan", "ExecutorStep", "ValidationReport"]
    assert ended.directive == "accept"
