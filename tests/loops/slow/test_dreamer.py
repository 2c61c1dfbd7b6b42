from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from artoo.contracts.base import Contract
from artoo.contracts.errors import MemoryStoreError, ModelUnreachable
from artoo.contracts.memory import (
    DreamReport,
    Level,
    Megram,
    MegramState,
    MemoryAction,
    MemoryWritten,
    Origin,
    SOPDraft,
    StoredLevel,
    TLayerProposal,
)
from artoo.contracts.tags import Pair, doubt_pair, kind_pair, macro_pair, micro_pair, tool_pair
from artoo.control.potentials import QUANTISATION, SUSPICION, promotion_scale
from artoo.loops.slow.dreamer import Dreamer
from artoo.loops.slow.evidence import guesses
from artoo.loops.slow.passing import DreamLimits
from artoo.memory.service import SharedMemory
from artoo.memory.views import Share
from artoo.ports.dream import Cluster
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds
from memory_engines import ENGINES, opened_on

DAY = 86_400.0
DRAFT = SOPDraft(rule="glob is quick", reason="it always was")
GLOB, CURL = micro_pair("glob", "*.pdf"), micro_pair("curl", "example.org")


@dataclass
class World:
    """A real store, a Dreamer, and what it said on the stream."""

    memory: SharedMemory
    clock: FakeClock
    ids: SequentialIds
    limits: DreamLimits = field(default_factory=DreamLimits)
    busy: Callable[[], bool] = lambda: False
    said: list[Contract] = field(default_factory=list[Contract])
    clusters: list[Cluster] = field(default_factory=list[Cluster])
    drafts: SOPDraft | None = DRAFT
    has_model: bool = True

    async def dream(self) -> DreamReport:
        """One pass."""
        dreamer = Dreamer(
            self.memory.dreams(),
            self.clock,
            self.ids,
            publish=self.said.append,
            busy=self.busy,
            draft=self._draft if self.has_model else None,
            limits=self.limits,
        )
        report = await dreamer.dream()
        assert self.said[-1] == report
        return report

    async def write(
        self,
        pair: Pair,
        state: str,
        times: int = 1,
        *,
        origin: Origin | None = None,
        level: StoredLevel = Level.MEGRAM,
    ) -> list[Megram]:
        """What R7 would write, on disk."""
        stimulus = SUSPICION if state == "suspicion" else QUANTISATION[state]
        made = [
            Megram(
                id=self.ids.new(),
                level=level,
                created_at=self.clock.now(),
                space=pair.space,
                entity=pair.entity,
                content=f"{state} of {pair}",
                state=MegramState(state),
                f=stimulus.f,
                sigma=stimulus.sigma,
                k=0.0 if level is Level.COMMON_SENSE else stimulus.k,
                origin=origin if origin is not None else Origin(),
            )
            for _ in range(times)
        ]
        for megram in made:
            self.memory.write(megram)
        await self.memory.flush()
        return made

    async def _draft(self, cluster: Cluster) -> SOPDraft | None:
        self.clusters.append(cluster)
        return self.drafts


@pytest.fixture(params=ENGINES)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[World]:
    """An empty memory, on each engine."""
    clock, ids = FakeClock(auto_advance=True), SequentialIds()
    memory = opened_on(str(request.param), request, tmp_path / "memory", clock, ids)
    yield World(memory, clock, ids)
    await memory.close()


async def test_faded_evidence_is_forgotten(world: World) -> None:
    """An entry is deleted once its own magnitude is below .1, and not a day earlier; rules stay for ever."""
    await world.write(GLOB, "change_path")
    await world.write(GLOB, "accept", level=Level.COMMON_SENSE)
    world.clock.advance(5.4 * DAY)
    assert (await world.dream()).forgotten == 0
    world.clock.advance(0.2 * DAY)
    report = await world.dream()
    assert report.forgotten == 1
    assert "change_path" in report.forgotten_examples[0].reason
    world.clock.advance(1_000 * DAY)
    await world.dream()
    assert len(await world.memory.query_c(*GLOB)) == 1
    assert (await world.memory.books.examine()).sound


async def test_refinements_live_until_the_first_pass(world: World) -> None:
    """`refine` fades below the threshold at once: the first pass takes it."""
    await world.write(GLOB, "refine")
    assert (await world.memory.query_mk(*GLOB)).attention > 0
    world.clock.advance(1.0)
    assert (await world.dream()).forgotten == 1


async def test_an_entry_from_the_future_is_kept(world: World) -> None:
    """What was written before the clock was set back is new, not faded and not amplified."""
    await world.write(GLOB, "accept")
    earlier = FakeClock(world.clock.now().replace(year=2020), auto_advance=True)
    reports: list[Contract] = []
    dreamer = Dreamer(
        world.memory.books.dreams(earlier), earlier, world.ids, publish=reports.append, busy=lambda: False
    )
    assert (await dreamer.dream()).forgotten == 0
    assert (await world.memory.query_mk(*GLOB)).attention == pytest.approx(0.9)


async def test_a_contradicted_rule_is_bankrupt(world: World) -> None:
    """A practice whose pair fails moves to K with k = .05 and a fresh clock; the report says why."""
    (rule,) = await world.write(GLOB, "accept", level=Level.COMMON_SENSE)
    world.clock.advance(30 * DAY)
    world.memory.record_negative_feedback(rule.id, "it deleted nothing")
    await world.memory.flush()
    report = await world.dream()
    assert [change.megram_id for change in report.demoted] == [rule.id]
    assert "-0.90" in report.demoted[0].reason
    assert await world.memory.query_c(*GLOB) == ()
    (share,) = [share for share in await _shares(world, GLOB) if share.megram.level is Level.KNOWLEDGE]
    assert (share.megram.k, share.megram.created_at) == (0.05, world.clock.now())
    assert (await world.memory.query_mk(*GLOB)).action is MemoryAction.CAUTION


async def _shares(world: World, pair: Pair) -> tuple[Share, ...]:
    return (await world.memory.books.explain(pair, world.clock.now())).shares


async def test_constraints_survive_their_own_evidence(world: World) -> None:
    """A constraint is bankrupt by success, not by the failures that it rests on, and not by silence."""
    await world.write(GLOB, "abandon", level=Level.COMMON_SENSE)
    assert not (await world.dream()).demoted
    await world.write(GLOB, "abandon", 3)
    assert not (await world.dream()).demoted
    await world.write(GLOB, "accept", 4)
    assert len((await world.dream()).demoted) == 1


async def test_strong_clusters_become_rules(world: World) -> None:
    """Attention ≥ 5 and |decision| ≥ 3 make one timeless rule with its sources; failures make a constraint."""
    made = await world.write(GLOB, "accept", 6)
    await world.write(CURL, "abandon", 6)
    report = await world.dream()
    assert len(report.promoted) == 2
    (practice,) = await world.memory.query_c(*GLOB)
    (constraint,) = await world.memory.query_c(*CURL)
    assert (practice.sigma, constraint.sigma) == (1.0, -1.0)
    assert practice.content == "glob is quick (it always was)"
    assert set(practice.sources) == {megram.id for megram in made}
    written = [message for message in world.said if isinstance(message, MemoryWritten)]
    assert {(message.level, message.k) for message in written} == {(Level.COMMON_SENSE, 0.0)}


async def test_weak_or_mixed_clusters_do_not(world: World) -> None:
    """Five accepts are too little, and five of each are too mixed: nobody is asked."""
    await world.write(GLOB, "accept", 5)
    await world.write(CURL, "accept", 5)
    await world.write(CURL, "abandon", 5)
    assert not (await world.dream()).promoted
    assert not world.clusters


async def test_what_is_so_for_one_kind_of_request_is_a_rule_for_that_kind(world: World) -> None:
    """A tool that failed for one kind of request is no constraint as such, however strong the evidence is."""
    here, wide = kind_pair("glob", "find all notes"), tool_pair("glob")
    await world.write(here, "abandon", 9)
    await world.write(wide, "abandon", 9)
    (made,) = (await world.dream()).promoted
    assert (made.space, made.entity) == here
    assert await world.memory.query_c(*wide) == ()
    assert [entry.rule_id for entry in (await world.memory.calibrate("x", [wide])).must_not] == [None]


async def test_a_tool_as_such_needs_many_kinds_of_request(world: World) -> None:
    """Seventeen kinds are too few, the eighteenth makes the rule; a kind that knows better stands against it."""
    wide = tool_pair("glob")
    await world.write(wide, "abandon", 6)
    for number in range(17):
        await world.write(kind_pair("glob", f"kind{number} of request"), "abandon")
    assert not (await world.dream()).promoted
    await world.write(kind_pair("glob", "one that differs"), "accept")
    assert not (await world.dream()).promoted
    await world.write(kind_pair("glob", "one that differs"), "abandon", 3)
    (made,) = (await world.dream()).promoted
    assert (made.space, made.entity) == wide


async def test_once_until_evidence_has_doubled(world: World) -> None:
    """A cluster is promoted once; again only when its attention is twice what it was."""
    await world.write(GLOB, "accept", 6)
    assert len((await world.dream()).promoted) == 1
    assert len((await world.dream()).promoted) == 0
    await world.write(GLOB, "accept", 5)
    assert len((await world.dream()).promoted) == 0
    await world.write(GLOB, "accept", 2)
    assert len((await world.dream()).promoted) == 1
    assert len(world.clusters) == 2


async def test_rules_and_guesses_are_no_evidence(world: World) -> None:
    """Hypotheses and former rules count in the potentials, and never towards a promotion."""
    await world.write(GLOB, "accept", 20, origin=Origin(hypothesis=True))
    await world.write(GLOB, "accept", 20, level=Level.COMMON_SENSE)
    assert (await world.memory.query_mk(*GLOB)).attention == pytest.approx(18)
    assert not (await world.dream()).promoted
    assert not world.clusters


async def test_dissonance_is_no_evidence(world: World) -> None:
    """What memory said against a rule by itself never adds up to the opposite rule."""
    (rule,) = await world.write(GLOB, "accept", level=Level.COMMON_SENSE)
    await world.write(GLOB, "change_approach")
    for _ in range(8):
        world.memory.record_negative_feedback(rule.id, "planned again")
    await world.memory.flush()
    assert (await world.dream()).promoted == ()


async def test_without_a_model_nothing_is_worded(world: World) -> None:
    """Without a model consolidation is skipped and counted; with one, later, it happens."""
    await world.write(GLOB, "accept", 6)
    world.has_model = False
    report = await world.dream()
    assert (report.promoted, report.drafts_skipped) == ((), 1)
    world.has_model = True
    assert len((await world.dream()).promoted) == 1


async def test_a_failed_draft_is_retried_a_day_later(world: World) -> None:
    """A model that says nothing is not asked about the same cluster again until the next day."""
    await world.write(GLOB, "accept", 6)
    world.drafts = None
    for _ in range(3):
        assert not (await world.dream()).promoted
    assert len(world.clusters) == 1
    world.clock.advance(DAY)
    world.drafts = SOPDraft(rule="now")
    assert len((await world.dream()).promoted) == 1


async def test_an_unreachable_model_costs_one_try(world: World) -> None:
    """A model error ends neither the pass nor the Dreamer."""

    async def unreachable(cluster: Cluster) -> SOPDraft | None:
        raise ModelUnreachable("nobody there")

    await world.write(GLOB, "accept", 6)
    store = world.memory.dreams()
    dreamer = Dreamer(
        store, world.clock, world.ids, publish=world.said.append, busy=lambda: False, draft=unreachable
    )
    report = await dreamer.dream()
    assert (report.error, report.drafts_skipped) == (None, 1)


async def test_drafts_are_bounded(world: World) -> None:
    """One pass asks a model at most so often; the rest waits for the next."""
    world.limits = DreamLimits(drafts=2)
    for name in "abcde":
        await world.write(micro_pair(name, "x"), "accept", 6)
    assert len((await world.dream()).promoted) == 2
    assert len((await world.dream()).promoted) == 2
    assert len((await world.dream()).promoted) == 1


async def test_a_bounded_pass_goes_on_where_it_stopped(world: World) -> None:
    """A pass looks at so many records at most; the next begins behind them, even after a restart."""
    world.limits = DreamLimits(records=40, slice=8)
    await world.write(GLOB, "change_path", 100)
    world.clock.advance(30 * DAY)
    forgotten: list[int] = []
    for _ in range(3):
        report = await world.dream()
        forgotten.append(report.forgotten)
        assert report.finished is (len(forgotten) == 3)
    assert forgotten == [40, 40, 20]


async def test_running_tasks_come_first(world: World) -> None:
    """While tasks run the pass waits; when they do not end it puts itself off and says so."""
    await world.write(GLOB, "refine", 10)
    world.clock.advance(DAY)
    world.busy = lambda: True
    report = await world.dream()
    assert (report.finished, report.forgotten) == (False, 0)
    waits = iter([True, True, True])
    world.busy = lambda: next(waits, False)
    report = await world.dream()
    assert (report.finished, report.forgotten) == (True, 10)


async def test_an_unusable_store_is_reported(world: World) -> None:
    """A pass over a store that cannot be used ends with a report, not with an exception."""
    await world.memory.close()
    report = await world.dream()
    assert report.error is not None and not report.finished
    with pytest.raises(MemoryStoreError):
        await world.memory.query_mk(*GLOB)


async def test_tools_are_guessed_from_similar_intents(world: World) -> None:
    """A tool that served a similar intent becomes a weak, marked hypothesis, once, and moves nothing."""
    for tool in ("glob", "read_file", "grep"):
        await world.write(tool_pair(tool), "accept", origin=Origin(intent="find_all_pdf"))
    for tool in ("glob", "read_file"):
        await world.write(tool_pair(tool), "accept", origin=Origin(intent="find_all_notes"))
    report = await world.dream()
    (guess,) = report.hypotheses
    assert (guess.space, guess.entity) == ("intent:find_all_notes", "tool:grep")
    live = await world.memory.query_mk("intent:find_all_notes", "tool:grep")
    assert live.action is MemoryAction.IGNORE
    advice = await world.memory.calibrate("find all notes")
    assert "untested" in advice.hypotheses[0].content and not advice.should_prefer
    assert not (await world.dream()).hypotheses


async def test_what_failed_for_an_intent_is_not_guessed_for_it(world: World) -> None:
    """A tool that was tried for the kind of request and failed is no hypothesis."""
    for tool in ("glob", "read_file", "grep"):
        await world.write(tool_pair(tool), "accept", origin=Origin(intent="find_all_pdf"))
    for tool in ("glob", "read_file"):
        await world.write(tool_pair(tool), "accept", origin=Origin(intent="find_all_notes"))
    await world.write(kind_pair("grep", "find_all_notes"), "change_approach")
    assert (await world.dream()).hypotheses == ()


async def test_a_guess_that_failed_since_is_not_told(world: World) -> None:
    """What the Dreamer guessed is tried, and fails: it stays in the store and out of the advice."""
    for tool in ("glob", "read_file", "grep"):
        await world.write(tool_pair(tool), "accept", origin=Origin(intent="find_all_pdf"))
    for tool in ("glob", "read_file"):
        await world.write(tool_pair(tool), "accept", origin=Origin(intent="find_all_notes"))
    await world.dream()
    await world.write(kind_pair("grep", "find_all_notes"), "change_approach")
    assert (await world.memory.calibrate("find all notes")).hypotheses == ()


async def test_kinds_are_renamed_and_merged(world: World) -> None:
    """Everything that names a kind moves to the other label, where both have one balance; verify finds it sound."""
    await world.write(kind_pair("glob", "find pdf"), "accept", origin=Origin(intent="find_pdf"))
    await world.write(macro_pair("find pdf"), "accept")
    await world.write(kind_pair("glob", "search papers"), "accept")
    books = world.memory.books
    assert await books.rename_kind("find_pdf", "search_papers") == 2
    assert [each.label for each in await books.kinds()] == ["search_papers"]
    live = await world.memory.query_mk("tool:glob", "intent:search_papers")
    assert live.attention == pytest.approx(1.8, rel=1e-3)
    assert (await world.memory.query_mk("tool:glob", "intent:find_pdf")).attention == 0
    assert await books.rename_kind("find_pdf", "search_papers") == 0
    assert (await books.examine()).sound


async def test_what_failed_more_than_it_helped_is_praised_to_nobody(world: World) -> None:
    """A failing pair that was refined (+.5) has a good word in memory, and bad potentials: it has not worked."""
    for intent in ("count-words", "count-lines"):
        await world.write(GLOB, "accept", origin=Origin(intent=intent))
    await world.write(CURL, "change_approach", times=3)
    await world.write(CURL, "refine", origin=Origin(intent="count-words"))
    assert (await world.dream()).hypotheses == ()


async def test_what_worked_long_ago_is_taken_off_the_list(world: World) -> None:
    """A pair whose evidence has been forgotten no longer stands among what worked for an intent."""
    await world.write(GLOB, "accept", origin=Origin(intent="find_all_pdf"))
    store = world.memory.dreams()
    assert await store.intents(10) == {"find_all_pdf": frozenset({"glob"})}
    world.clock.advance(60 * DAY)
    assert (await world.dream()).forgotten == 1
    async with store.turn():
        assert await store.intents(10) == {}
    assert await world.memory.alternatives("find all pdf") == ()
    await world.write(GLOB, "accept")
    assert await world.memory.alternatives("find all pdf") == ()


def test_guesses_are_votes_by_similarity() -> None:
    """Scores are votes of similar intents, by similarity, with the rule of succession; strangers do not vote."""
    worked = {
        "a": frozenset({"x", "y"}),
        "b": frozenset({"x", "y", "z"}),
        "c": frozenset({"x", "w", "v", "u"}),
        "stranger": frozenset({"q"}),
    }
    found = {(intent, tool): score for score, intent, tool in guesses(worked)}
    assert found[("a", "z")] == pytest.approx(0.573, abs=1e-3)
    assert ("a", "w") not in found
    assert guesses({"a": frozenset("x"), "b": frozenset("xy")})[0][0] < 0.7  # one alone is no certainty
    assert not any(tool == "q" or intent == "stranger" for intent, tool in found)


async def test_only_the_operator_changes_t(world: World) -> None:
    """A rule that has stood for two weeks on twice the evidence is proposed once, and stays a proposal."""
    await world.write(GLOB, "accept", 6)
    await world.dream()
    world.clock.advance(15 * DAY)
    await world.write(GLOB, "accept", 12)
    world.has_model = False
    assert not (await world.dream()).proposals, "nobody has asked for the rule since"
    await world.memory.query_c(*GLOB)
    await world.memory.flush()
    report = await world.dream()
    (proposal,) = await world.memory.books.open_proposals()
    assert report.proposals == (proposal.id,)
    assert any(isinstance(message, TLayerProposal) for message in world.said)
    assert not (await world.dream()).proposals
    answered = await world.memory.books.answer_proposal(proposal.id, accept=False)
    assert answered.status == "refused"
    assert await world.memory.books.open_proposals() == ()
    with pytest.raises(MemoryStoreError, match="refused already"):
        await world.memory.books.answer_proposal(proposal.id, accept=True)


async def test_a_rule_for_one_kind_of_request_is_not_put_to_the_operator(world: World) -> None:
    """What becomes permanent stands in every prompt, where it has no business."""
    here = kind_pair("glob", "find all notes")
    await world.write(here, "accept", 6)
    await world.dream()
    world.clock.advance(15 * DAY)
    await world.write(here, "accept", 12)
    await world.memory.query_c(*here)
    await world.memory.flush()
    assert not (await world.dream()).proposals


async def test_reports_are_kept(world: World) -> None:
    """People can see what the last passes did and why."""
    await world.write(GLOB, "accept", 6)
    report = await world.dream()
    shown = await world.memory.books.overview(world.clock.now())
    assert shown.reports[0] == report
    assert shown.levels == {"M": 6, "K": 0, "C": 1}
    assert [live.pair for live in shown.strongest[MemoryAction.EXPLOIT]] == [GLOB]


async def test_it_dreams_on_time_and_after_tasks(world: World) -> None:
    """Passes come at the interval, and a settle delay after a task has ended."""
    limits = DreamLimits(interval=300, settle=30)
    begun: list[float] = []

    def note(message: Contract) -> None:
        if isinstance(message, DreamReport):
            begun.append(world.clock.monotonic())
            if len(begun) == 1:
                dreamer.nudge()
            if len(begun) == 3:
                raise StopDreaming

    store = world.memory.dreams()
    dreamer = Dreamer(store, world.clock, world.ids, publish=note, busy=lambda: False, limits=limits)
    with pytest.raises(StopDreaming):
        await dreamer.run()
    first, second, third = begun
    assert 300 <= first < 303
    assert 30 <= second - first < 33
    assert 300 <= third - second < 303


async def test_one_dreams_at_a_time(world: World) -> None:
    """While another has the turn nothing is changed and nothing said on the stream; then the next one dreams."""
    await world.write(GLOB, "refine")
    world.clock.advance(DAY)
    said: list[Contract] = []
    other = Dreamer(world.memory.dreams(), world.clock, world.ids, publish=said.append, busy=lambda: False)
    async with world.memory.dreams().turn():
        report = await other.dream()
    assert (report.finished, report.forgotten, said) == (False, 0, [])
    assert report.error is not None and "dreaming over" in report.error
    assert (await other.dream()).forgotten == 1


class StopDreaming(Exception):
    """Ends a test."""


async def test_a_systematic_bias_is_recognised(world: World) -> None:
    """Cell 6 in three tasks of one intent is noted for its planner, once until it has doubled; in two it is not."""
    pair = doubt_pair("sum the column")
    for number in range(2):
        await world.write(pair, "suspicion", origin=Origin(task_id=f"t{number}"))
    await world.write(pair, "suspicion", origin=Origin(task_id="t1"))
    assert not (await world.dream()).biases
    await world.write(pair, "suspicion", origin=Origin(task_id="t2"))
    (bias,) = (await world.dream()).biases
    assert (bias.space, bias.entity) == macro_pair("sum the column")
    assert not (await world.dream()).biases
    found = await world.memory.calibrate("sum the column")
    assert [note for note in found.known if "3 such tasks" in note]
    assert (found.should_prefer, found.must_not, found.caution) == ((), (), ())
    for number in range(3, 6):
        await world.write(pair, "suspicion", origin=Origin(task_id=f"t{number}"))
    assert "6 tasks" in (await world.dream()).biases[0].reason


async def test_false_promotions_raise_the_thresholds(world: World) -> None:
    """Rules that proved false make the next one need more evidence, and the report says how much."""
    for times in (6, 11, 16):
        pair = micro_pair(f"t{times}", "x")
        await world.write(pair, "accept", times)
        (rule,) = (await world.dream()).promoted
        for _ in range(times + 1):
            world.memory.record_negative_feedback(rule.megram_id, "it was wrong")
        await world.memory.flush()
        assert (await world.dream()).demoted
    await world.write(GLOB, "accept", 6)
    report = await world.dream()
    assert not report.promoted
    assert report.scale == pytest.approx(promotion_scale(3, 3)) == pytest.approx(4 / 23 / 0.05)
    await world.write(GLOB, "accept", 16)
    assert (await world.dream()).promoted
