"""Define the fast loop's exchange: R3 ⇄ R4a, and the outcome that leaves it."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterable, KeysView, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import pairwise
from typing import Literal, cast

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Assurance, Mode, weakest
from artoo.contracts.failure import FailureClass, failure_class, says_absent
from artoo.contracts.findings import Reason
from artoo.contracts.plan import Glance
from artoo.contracts.roles import Role

# Characters of a tool's output that are kept: the first and the last half (SPEC section 2).
OUTPUT_KEPT = 4_000


# Characters of a verdict's evidence.
EVIDENCE_KEPT = 2_000

# How artoo's own file tools begin when a path is not there.
_OWN_ABSENCE = "there is no "
# How a shell ends that has no program of that name, or none whose libraries are there.
_NO_PROGRAM = 127
# How Python begins to report an error.
_TRACEBACK = "Traceback (most recent call last)"
_SHELL = "shell:"
_READING_TOOLS = frozenset(
    ("read_file", "find_files", "search_text", "find_text", "glob", "search", "web_search", "web_fetch")
)
_TEXT_PROGRAMS = (
    "cat cksum cmp column cut diff egrep fgrep grep head jq md5sum nl rg sha256sum sort tac tail tr uniq wc"
)
_STATE_PROGRAMS = "date du file find id locate ls mdfind pgrep ps pwd readlink realpath stat tree uname whoami"
# Programs that print what stands somewhere else than in their command, and change nothing.
_READING_PROGRAMS = frozenset((*_TEXT_PROGRAMS.split(), *_STATE_PROGRAMS.split()))
# Programs that only show something: one that fails is one that found nothing.
_SHOWING_PROGRAMS = _READING_PROGRAMS | {"[", "basename", "command", "dirname", "echo", "printf", "test", "which"}
_GIT_SHOWS = frozenset(
    ("blame", "describe", "diff", "grep", "log", "ls-files", "rev-list", "rev-parse", "shortlog", "show", "status")
)
_WRITES = frozenset((">", ">>", "&>", ">|"))
_ENDS_ITSELF, _BRACKETS = frozenset(("exit", "return")), "(){};"

WithheldBy = Literal["person", "nobody"]
"""Who refused an operation: a user, or artoo because no user could be asked."""


class CallStatus(StrEnum):
    """The possible ends of a tool call. Only `ok` can support a claim that something was done.

    `running`: the call's time was over and its command goes on as a process; nothing is known of its end yet.
    """

    OK = "ok"
    ERROR = "error"
    RUNNING = "running"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"

    @property
    def failed(self) -> bool:
        """Check whether the call ran and ended badly."""
        return self in (CallStatus.ERROR, CallStatus.TIMEOUT, CallStatus.INTERRUPTED)


class ToolCall(Contract):
    """Record one tool call: the ground truth against which claims are checked.

    `identity` is the unit of blocking: the tool's name, and for the shell each program (`shell:find`).
    `target` is the main input: a path, query or URL; for the shell the normalised command.
    `ran` says what really ran when that differs from `input`. `output` and `error_output` are cut to
    head and tail; `total_bytes` counts all of both streams. `result_count` is set by searches.
    `changes` are the paths that the call created or changed, `bookkeeping` whether it changed git's own notes.
    `dropped` are those changes that were withheld, `withheld_by` who refused, if a user was asked.
    `self_contained`: what ran could see nothing but its own text. `process` is the id of the process that still ran
    when the call ended. `overlapped`: calls or processes of other subtasks ran at the same time, so that some of
    `changes` may be theirs; their records name these paths too. `masked`: the command goes on after an error of one
    of its programs, so that its exit code need not tell of it.
    """

    tool: str
    identity: tuple[str, ...]
    target: str = ""
    input: str = ""
    ran: str | None = None
    status: CallStatus = CallStatus.OK
    exit_code: int | None = None
    output: str = ""
    error_output: str = ""
    total_bytes: int = 0
    truncated: bool = False
    duration_ms: int = 0
    result_count: int | None = None
    changes: tuple[str, ...] = ()
    bookkeeping: bool = False
    dropped: tuple[str, ...] = ()
    withheld_by: WithheldBy | None = None
    reason: str | None = None
    self_contained: bool = False
    process: str = ""
    overlapped: bool = False
    masked: bool = False

    @property
    def never_ran(self) -> bool:
        """Check whether the call was refused before it could do anything, and not for want of consent: by a block,
        because it was made before, for its arguments. Such a call says nothing about the tools and targets that it
        names."""
        return self.status is CallStatus.REFUSED and self.withheld_by is None and not self.dropped

    @property
    def went_wrong(self) -> bool:
        """Check whether it did not end well. A command that still runs has not ended."""
        return self.status not in (CallStatus.OK, CallStatus.RUNNING)

    @property
    def changed_something(self) -> bool:
        """Check whether it changed files, or git's own notes."""
        return bool(self.changes) or self.bookkeeping

    @property
    def says_no(self) -> bool:
        """Check whether it may be a search, a test or a comparison that says no: exit code 1, and nothing that the
        system or Python reports as an error.
        """
        if self.status is not CallStatus.ERROR or self.exit_code != 1:
            return False  # asked of every call that is shown; the search below is long
        told = bool(self.output.strip()) or not self.error_output.strip()
        error = _TRACEBACK in self.error_output or failure_class(self.error_output) is FailureClass.ENVIRONMENTAL
        return told and not error

    @property
    def only_looked(self) -> bool:
        """Check whether it is a reading tool, or consists of programs of the shell that only show or print."""
        words = self.target.split()
        if self.changed_something or not _WRITES.isdisjoint(words):
            return False
        behind = _words_behind(words)
        programs = (each.removeprefix(_SHELL) for each in self.identity if each.startswith(_SHELL))
        others = {each for each in self.identity if not each.startswith(_SHELL)}
        return others <= _READING_TOOLS and all(only_shows(one, *behind.get(one, ())) for one in programs)

    @property
    def looked_in_vain(self) -> bool:
        """Check whether it only looked, did not end well, and has its exit code from a look: one that a command
        gives itself (`exit 1`) may stand for anything.
        """
        words = {word.strip(_BRACKETS) for word in self.target.split()}
        return self.went_wrong and self.only_looked and _ENDS_ITSELF.isdisjoint(words)

    @property
    def hidden_error(self) -> str:
        """Return the error that it printed and its exit code hides; `-` if it printed only its own words.

        A command that is done already (`grep -q x f || echo x >> f`) prints nothing, and a reading program in it
        prints what a file has, also where these are words of the command.
        """
        quiet = not (printed_words(self) or self.changed_something)
        if self.status is not CallStatus.OK or not (self.masked or quiet):
            return ""
        shown = self.output if self.masked and not self.only_looked else ""
        printed = "\n".join(filter(None, (self.error_output.strip(), shown.strip())))
        if failure_class(printed) is FailureClass.ENVIRONMENTAL or _TRACEBACK in printed:
            return printed
        if not (self.masked and quiet) or self.only_looked:
            return ""
        reads = any(each.removeprefix(_SHELL) in _READING_PROGRAMS for each in self.identity)
        return printed if self.error_output.strip() or not reads else ""

    @property
    def failure_class(self) -> FailureClass:
        """Return why it failed, if it did: interrupted, refused, something was lacking, or wrong."""
        if (
            self.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED, CallStatus.RUNNING)
            or self.withheld_by is not None
            or self.dropped
        ):
            return FailureClass.ENVIRONMENTAL
        if self.status is CallStatus.REFUSED or self.exit_code == _NO_PROGRAM:  # whose program is the way itself
            return FailureClass.LOGICAL
        if (self.reason or "").startswith(_OWN_ABSENCE):
            return FailureClass.ENVIRONMENTAL
        return failure_class("\n".join((self.reason or "", self.error_output, self.output)))

    @property
    def met_the_world(self) -> bool:
        """Check whether the world refused it: it did not succeed, and was not made wrongly."""
        return self.went_wrong and self.failure_class is FailureClass.ENVIRONMENTAL

    @property
    def absences(self) -> tuple[str, ...]:
        """Return what it says of missing files, if it failed: the lines that name them."""
        if self.status is not CallStatus.ERROR:
            return ()
        reason = self.reason or ""
        if reason.startswith(_OWN_ABSENCE):
            return (reason.partition(";")[0],)  # behind it stands what there is
        lines = "\n".join((reason, self.error_output, self.output)).splitlines()
        return tuple(line for line in lines if says_absent(line))

    @property
    def list_lengths(self) -> tuple[int, ...]:
        """Return the lengths of the lists that lines of its output end with, as Python and JSON print them.

        Empty ones are left out.
        """
        lists: list[int] = []
        for line in map(str.rstrip, self.output.splitlines()):
            if not line.endswith("]") or "[" not in line or "\\" in line:  # Python warns of some escapes
                continue
            for read in (json.loads, ast.literal_eval):
                with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                    value: object = read(line[line.index("[") :])
                    lists += [len(cast("list[object]", value))] if isinstance(value, list) else []
                    break
        return tuple(filter(None, lists))

    def line(self) -> str:
        """Return the seeds' one-line form: `tool: input → first 200 characters of the output`."""
        shown = self.output if self.status is CallStatus.OK else (self.reason or self.error_output or self.output)
        return f"{self.tool}: {self.input} → {shown[:200]}"


def printed_words(call: ToolCall) -> frozenset[str]:
    """Return the words that a call put out and that are not in its input."""
    return frozenset(call.output.casefold().split()) - frozenset(call.input.casefold().split())


def falls_short(call: ToolCall) -> bool:
    """Check whether what a call was to do did not come about, or not all of it, as its own record says."""
    ended_badly = call.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED, CallStatus.RUNNING)
    withheld = call.withheld_by is not None or bool(call.dropped)
    error = call.status is CallStatus.ERROR and not call.says_no
    return ended_badly or withheld or error or bool(call.hidden_error)


def standing_failure(calls: Sequence[ToolCall]) -> int:
    """Return the number of the last call that fell short and was not made good later; 0 if there is none.

    A call is made good by a later one of the same kind that succeeded, or that changed something; a look by any
    later call, a withheld change when it came about, a process when it was looked after. Where every call was
    turned away it is the last one.
    """
    if calls and all(call.never_ran for call in calls):
        return len(calls)
    for number in range(len(calls), 0, -1):
        call = calls[number - 1]
        if falls_short(call) and not any(_makes_good(each, call) for each in calls[number:]):
            return number
    return 0


def _makes_good(later: ToolCall, call: ToolCall) -> bool:
    if later.status is not CallStatus.OK or falls_short(later):
        return False
    again = (later.tool, later.input) == (call.tool, call.input)
    if call.withheld_by is not None or call.dropped:
        return again or (bool(call.dropped) and frozenset(later.changes).issuperset(call.dropped))
    if call.status is CallStatus.RUNNING:
        return call.process in later.input
    looked = call.looked_in_vain if call.went_wrong else call.only_looked
    return again or looked or later.changed_something or _kinds(later) >= _kinds(call)


def _kinds(call: ToolCall) -> frozenset[tuple[str, str]]:
    """Return its tools, and its programs with the bare words behind them: `git push` is no `git status`."""
    behind = _words_behind(call.target.split())
    names = (name.partition(":")[2] or name for name in call.identity)
    return frozenset((name, word if word.isalpha() else "") for name in names for word in behind.get(name, ("",)))


def _words_behind(words: Sequence[str]) -> dict[str, set[str]]:
    """Return each word of a command with the words that follow it somewhere."""
    found = defaultdict[str, set[str]](set)
    for word, behind in pairwise((*words, "")):
        found[word].add(behind)
    return found


def only_shows(program: str, *behind: str) -> bool:
    """Check whether a program of the shell only shows something; `behind` are the words that follow it."""
    return program in _SHOWING_PROGRAMS or (program == "git" and _GIT_SHOWS.issuperset(behind or ("",)))


def identities_of(calls: Iterable[ToolCall]) -> KeysView[str]:
    """Return each identity once, in the order of the calls."""
    return dict.fromkeys(identity for call in calls for identity in call.identity).keys()


class CallEffects(StrEnum):
    """The reach of a call, which decides what a resumed task may do about one that a crash cut off.

    `none`: it only reads, and may be run again. `staged`: it works in the task's workspace alone: what it left
    there stays, and artoo does not repeat it. `outside`: other programs, services, foreign code, commands without a
    sandbox: no one can know what it did.
    """

    NONE = "none"
    STAGED = "staged"
    OUTSIDE = "outside"


class ToolStarted(Contract):
    """Report that a tool call goes out now. R3's record; the ToolCalled with the same `act` ends it.

    `act` is unique within the task and the same when the task is run again from its log. `input` is cut as in
    ToolCall; `digest` (sha256 of tool and whole input) is there when `effects` is `outside`. A call that goes
    further than it began (a command that is allowed to run without a sandbox) is started a second time.
    """

    subtask_id: str
    attempt: int
    act: str
    tool: str
    input: str = ""
    effects: CallEffects
    digest: str = ""


class ToolCalled(Contract):
    """Report that a tool call ended. R3's record on the stream, in the order in which the calls ended.

    `act` as in ToolStarted; a call that was refused has one too, and no ToolStarted. Empty in logs of version 0.1.
    """

    subtask_id: str
    attempt: int
    call: ToolCall
    act: str = ""


class ExecutionResult(Contract):
    """Report the executor's result. `output` is a claim; `tool_calls` are the evidence. R3 → R4a.

    `tool_calls` are the calls of all attempts of the subtask, in order; a call's number is its index + 1, and
    `attempt_from` the index of this attempt's first one. `verbatim`: the output is what the call that `sources`
    names put out, word for word (or what it made). Else `sources`, and `failures`, are what a model said of its
    answer; they decide nothing.
    `cannot`: it says that this cannot be done; `output` is why. `uncertain`: no step led to a result; `stuck`:
    nothing new was carried out either, so that another attempt would be the same.
    `infrastructure` says that the subtask's time ran out, which no retry in the fast loop can fix.
    `small_model`: the steps came from a model that is known to be small. `glance`: what the first prompt had, where
    that was inspected again since the plan, because other parts may have changed it. `heard` are the ids of the
    user's messages that the model has read.
    """

    subtask_id: str
    attempt: int = Field(ge=1)
    status: Literal["completed", "cannot", "uncertain", "failed"]
    output: str = ""
    sources: tuple[int, ...] = ()
    failures: tuple[int, ...] = ()
    verbatim: bool = False
    tool_calls: tuple[ToolCall, ...] = ()
    attempt_from: int = Field(default=0, ge=0)
    stuck: bool = False
    infrastructure: str | None = None
    small_model: bool = False
    glance: Glance | None = None
    heard: tuple[str, ...] = ()

    @property
    def put_out_by(self) -> int | None:
        """Return the number of the call that put a verbatim output out; the last, where a log names none."""
        if not self.verbatim or not self.tool_calls:
            return None
        named = self.sources[-1] if self.sources else len(self.tool_calls)
        return named if 1 <= named <= len(self.tool_calls) else None

    @property
    def attempt_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of this attempt alone."""
        return self.tool_calls[self.attempt_from :]


class DecidedBy(StrEnum):
    """The decider of a verdict, strongest first (SPEC section 3). `nobody`: it is open."""

    CHECK = "check"
    FACT = "fact"
    AGREEMENT = "agreement"
    JUDGEMENT = "judgement"
    NOBODY = "nobody"

    @property
    def assurance(self) -> Assurance:
        """Return how far a verdict from here can be relied on."""
        return _ASSURES[self]


_ASSURES = {
    DecidedBy.CHECK: Assurance.CHECKED,
    DecidedBy.FACT: Assurance.CHECKED,
    DecidedBy.AGREEMENT: Assurance.AGREED,
    DecidedBy.JUDGEMENT: Assurance.JUDGED,
    DecidedBy.NOBODY: Assurance.UNVERIFIED,
}


class CriterionVerdict(Contract):
    """Give one criterion's verdict. `failed_attempts` of `attempts` is the paper's k/N.

    `open`: nothing decided it, and it counts as passed in D; `decided_by` is then `nobody`.
    `evidence` is for models and programs, in English where it is code's; `reason` is the same, typed, where code
    found it. `check` is what was checked, where a check decided. `identities` are the tool identities that a
    failing verdict cites, `accountable` the role that answers for it (paper, Appendix C). `blameless`: what was
    found speaks against no tool (`BLAMES_NOBODY`, or a check of R2's where every call succeeded): none is blocked,
    and nothing is learnt against one for it.
    """

    criterion: str
    mode: Mode = Mode.PLAUSIBLE
    verdict: Literal["pass", "fail", "open"]
    failure_class: FailureClass | None = None
    evidence: str = ""
    reason: Reason | None = None
    check: str = ""
    decided_by: DecidedBy = DecidedBy.FACT
    failed_attempts: int = Field(default=0, ge=0)
    attempts: int = Field(default=1, ge=1)
    identities: tuple[str, ...] = ()
    accountable: Role = Role.EXECUTOR
    contradicted: bool = False
    blameless: bool = False

    @property
    def of_world(self) -> bool:
        """Check whether it failed because of the world."""
        return self.failure_class is FailureClass.ENVIRONMENTAL


def assurance_of(verdicts: Iterable[CriterionVerdict]) -> Assurance:
    """Return the assurance of the weakest of these verdicts; `unverified` when there are none."""
    return weakest(verdict.decided_by.assurance for verdict in verdicts)


class CriterionJudged(Contract):
    """Report that a verdict was reached. R4a and R4b put each on the stream."""

    subtask_id: str | None = None
    attempt: int = 1
    verdict: CriterionVerdict


class CorrectionSignal(Contract):
    """Report the mistakes and what to do about them, each once. R4a → R3, at most `max_retries` times."""

    subtask_id: str
    attempt: int = Field(ge=1)
    what_was_wrong: str
    what_to_do: str
    failed_criterion: str
    failure_class: FailureClass
    prior_tool_calls: tuple[str, ...] = ()


class GapPoint(Contract):
    """Give one attempt on the way: share of criteria met, and which were not."""

    attempt: int
    score: float = Field(ge=0, le=1)
    unmet_criteria: tuple[str, ...] = ()
    failure_class: FailureClass | None = None


class SubTaskOutcome(Contract):
    """Report the outcome of the fast loop. R4a → dispatcher, R4b. `infrastructure` as in ExecutionResult.

    `assurance` is that of its weakest criterion, `open` are the criteria that nothing decided.
    `hopeless`: the executor says that it cannot be done, and that stands: no other plan can help. `heads`: what was
    shown of files before the first call, where no call has read one. `heard` as in ExecutionResult. `absent`: files
    that the task and the output name and that are not there; `empty`: files that the output names and that hold
    nothing. `failures` is what logs of earlier versions hold.
    """

    subtask_id: str
    parent_task_id: str
    status: Literal["matched", "failed"]
    intent: str = ""
    output: str = ""
    failure_reason: str | None = None
    gap_trajectory: tuple[GapPoint, ...] = ()
    criteria_verdicts: tuple[CriterionVerdict, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    failures: tuple[int, ...] = ()
    infrastructure: str | None = None
    hopeless: bool = False
    heads: str = ""
    assurance: Assurance = Assurance.UNVERIFIED
    open: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return its texts: its output, and the inputs and outputs of its calls."""
        calls = (text for call in self.tool_calls for text in (call.input, call.output, call.error_output))
        reasons = (call.reason or "" for call in self.tool_calls)
        return (self.output, *calls, *reasons)

    @property
    def confirmed(self) -> bool:
        """Check whether a criterion of its own has passed."""
        return any(verdict.verdict == "pass" for verdict in self.criteria_verdicts)

    @property
    def done(self) -> bool:
        """Check whether its work is done: not where nothing confirms it, and a call fell short."""
        return self.status == "matched" and (self.confirmed or not standing_failure(self.tool_calls))

    @property
    def refused(self) -> bool:
        """Check whether consent was missing: a user said no, or no user could approve the last operation."""
        said_no = any(call.withheld_by == "person" for call in self.tool_calls)
        unanswered = bool(self.tool_calls) and self.tool_calls[-1].withheld_by is not None
        return self.status == "failed" and (said_no or unanswered)

    @property
    def corrections(self) -> int:
        """Return how often the fast loop corrected this subtask."""
        return max(0, len(self.gap_trajectory) - 1)
