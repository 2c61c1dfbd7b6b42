"""Find facts that refute a result, such as failed calls, missing files and tokens without evidence.

Reference: Law 0.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall, falls_short, standing_failure
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import Found, Reason
from artoo.contracts.text import last_part, shortened
from artoo.evidence.grounding import named, nearest, own_words, seen_in, shown, takes_up, ungrounded
from artoo.evidence.tokens import Token, paths_in, words_of
from artoo.ports.evidence import EvidenceSource

LOOKED_FOR = 12  # names in a text that are looked up on disk
MOST_WORDS = 40  # words of a request that are looked up on disk; most of them name no file
_NAME = re.compile(r"[\w-]{2,64}")
_ENDING = re.compile(
    r"[^.]\.[A-Za-z][A-Za-z0-9]{0,7}\Z"
)  # of a file's name: `ctx.get_source` is a name in a program
_SAID = 160
_MEND = "Do it in another way, or say what it printed; if it stays undone, end with cannot."
_WITHOUT = "If it cannot be done without what was withheld, end with cannot."
_AS_IT_STANDS = "Where the request leaves that open, give figures, times and quotations as the outputs have them."
_OWN_QUOTE = "Words of your own stand without quotation marks."
_WORKED_OUT = "Write a figure that is worked out with what it is worked out from, as in a + b = c or a / b = p %."
_OWN_WORDS = "What a call printed of its own input shows nothing."


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact against a result. If `asked_once` is true, the fact justifies one correction. `advice` tells the
    model how to fix it. `doubts` contains the tokens without evidence, or the call that fell short. If `of_look` is
    true, the call that failed only read. An answer may rest on exactly this failure, for example that a file does
    not exist."""

    message: str | Reason
    failure_class: FailureClass = FailureClass.LOGICAL
    identities: tuple[str, ...] = ()
    contradicts: bool = True
    asked_once: bool = False
    advice: str = ""
    doubts: frozenset[str] = frozenset()
    of_look: bool = False

    @property
    def text(self) -> str:
        """Return the fact as text, for a model."""
        return self.message.text if isinstance(self.message, Reason) else self.message


def rests_on_nothing(calls: Iterable[ToolCall]) -> bool:
    """Return whether no call shows anything, because there is none or because each printed only its own input."""
    return all(map(own_words, calls))


def broken_act(result: ExecutionResult, request: Sequence[str] = ()) -> Fact | None:
    """Return the fact that refutes a completed result: a fact in the records of the calls, or the fact that there
    is no result.

    A call that fell short and was not made good refutes the result. There are three exceptions: the answer has an
    exact token that this call or a later one printed, a later call printed the answer, or the answer has a word of
    a later call's target. Only a judge can then tell what the answer says about the failure."""
    calls, claimed, delivered = result.tool_calls, result.status != "uncertain", result.put_out_by or 0
    if result.small_model and delivered:  # Each program that a small model writes is an independent attempt.
        calls = calls[:delivered]
    ran = [(place, call) for place, call in enumerate(calls, 1) if not call.never_ran]
    last, ended = ran[-1] if ran else (0, None)
    number = standing_failure(calls)
    if not number and ended is not None and ended.went_wrong and not (ended.looked_in_vain and ended.says_no):
        number = last
    if number:
        call, refused = calls[number - 1], calls[number - 1].withheld_by == "person"
        withheld = call.withheld_by is not None or bool(call.dropped)
        later = {word for each in calls[number:] for word in words_of(each.target)} - {*words_of(call.target)}
        told = delivered > number or any(len(word) > 2 and word in later for word in words_of(result.output))
        told = told or takes_up(result.output, calls[number - 1 :], request)
        # In this case the criteria judge the result.
        went_on = refused and claimed and any(map(_is_work, calls[number:]))
        if not went_on and (refused or not (told and claimed)):
            how = _how_it_ended(number, call)
            return Fact(
                how,
                call.failure_class,
                call.identity,
                contradicts=(claimed and not refused) or bool(call.dropped),
                asked_once=claimed and not call.never_ran,
                advice="" if not claimed or result.small_model else _WITHOUT if withheld else _MEND,
                doubts=frozenset((how.subject,)),
                of_look=claimed and call.looked_in_vain and call.status is CallStatus.ERROR,
            )
    if not claimed:
        return Fact(Reason(found=Found.NO_RESULT, said=shortened(result.output, _SAID)), contradicts=False)
    if not result.output.strip():
        return Fact(Reason(found=Found.EMPTY), contradicts=False)
    return None


def _is_work(call: ToolCall) -> bool:
    """Return whether a call succeeded and may have done the work that remained."""
    done = call.status is CallStatus.OK and not falls_short(call)
    return done and (call.changed_something or not call.only_looked)


def _how_it_ended(number: int, call: ToolCall) -> Reason:
    """Return the reason, which says in what way a call fell short."""
    match call.status:
        case _ if call.dropped or call.withheld_by is not None:
            found, said = Found.WITHHELD, ", ".join(call.dropped[:3]) or shortened(call.target, 80) or call.tool
        case CallStatus.TIMEOUT | CallStatus.INTERRUPTED:
            found, said = Found.CUT_SHORT, call.status.value
        case CallStatus.RUNNING:
            found, said = Found.STILL_RUNNING, shortened(call.reason or "", _SAID)
        case CallStatus.REFUSED:
            found, said = Found.DID_NOT_RUN, shortened(call.reason or "", _SAID)
        case CallStatus.ERROR:
            code = "" if call.exit_code is None else f"exit {call.exit_code}"
            words = last_part((call.error_output or call.reason or call.output).strip(), _SAID)
            found, said = Found.FAILED, ": ".join(filter(None, (code, words)))
        case CallStatus.OK:
            found, said = Found.SAYS_ONLY, last_part(call.hidden_error, _SAID)
    return Reason(found=found, subject=f"{call.tool} [{number}]", said=said)


async def told_files(result: ExecutionResult, asked: str, source: EvidenceSource) -> tuple[list[str], list[str]]:
    """Return as a fact the missing files that both the request and the answer name, and the named files that are
    empty.

    The request counts as evidence for the names of missing files, so only the disk shows that the files were not
    made. Some names are left out, because they need not be missing files: names that a call showed (with or without
    a directory), names of files that a call changed or deleted, ends of patterns (`*.tmp`), and words with a slash
    (n/a) whose first part does not exist."""
    said = dict.fromkeys(map(posixpath.normpath, paths_in(result.output))) if result.status == "completed" else ()
    if not said:
        return [], []
    calls = result.tool_calls
    there = frozenset(posixpath.normpath(path) for call in calls for path in paths_in(shown(call)))
    touched = tuple(f"/{path}" for call in calls for path in call.changes)
    wanted = frozenset(map(posixpath.normpath, paths_in(asked))) - there - frozenset(map(posixpath.basename, there))
    texts = (asked, result.output, *(call.input for call in calls))
    patterns = {name for name in said if any(f"*{name}" in text for text in texts)}
    told = [name for name in said if any(map(str.isalpha, name)) and name not in patterns][:LOOKED_FOR]
    seen = {name: await source.file(name) for name in told}
    empty = [name for name, file in seen.items() if file.exists and not (file.is_directory or file.size)]
    gone = [name for name, file in seen.items() if name in wanted and not (file.exists or file.is_broken_link)]
    gone = [name for name in gone if not any(path.endswith(f"/{name}") for path in touched)]
    return [
        name for name in gone if _ENDING.search(name) or (await source.file(name.partition("/")[0] or "/")).exists
    ], empty


async def floating_tokens(
    result: ExecutionResult,
    request: Sequence[str],
    around: Callable[[], Awaitable[str]],
    source: EvidenceSource,
    unnamed: str = "",
) -> Fact | None:
    """Return as a fact the tokens of the answer that have no evidence. Return None if there are none. The expensive
    sources (the difference, the listing by `around`, the paths) are read only if a token is missing. `unnamed` has
    the same meaning as in Seen."""
    calls = result.tool_calls
    if result.put_out_by is not None and not own_words(calls[result.put_out_by - 1]):
        return None
    seen = seen_in(calls, request, unnamed)
    missing: Sequence[Token] = ungrounded(result.output, seen)
    if missing:
        changed = await source.difference() if any(call.changed_something for call in calls) else ""
        wider = ungrounded(result.output, seen.wider(changed, await around()))
        missing = [each for each in wider if each.kind != "path" or not (await source.file(each.text)).exists]
    if not missing:
        return None
    advice = [_AS_IT_STANDS, *([_WORKED_OUT] if any(each.number is not None for each in missing) else [])]
    advice += [_OWN_QUOTE] if any(each.kind == "quote" for each in missing) else []
    advice += [_OWN_WORDS] if not result.small_model and any(map(own_words, calls)) else []
    advice += nearest(missing[0], result.output, seen)
    found, texts = Reason(found=Found.NOWHERE, said=named(missing)), frozenset(each.text for each in missing)
    return Fact(found, asked_once=True, advice=" ".join(advice), doubts=texts)


async def own_knowledge(
    answer: str, request: Sequence[str], source: EvidenceSource, told: Sequence[str] = (), unnamed: str = ""
) -> Fact | None:
    """Judge an answer without any call: it may state facts about the world, but not about files on this machine.

    The answer is refuted if it names an existing file that the request does not name, or if it states tokens
    while request or answer names an existing file or directory. Text that its author was `told` is evidence;
    `unnamed` texts are evidence for all tokens except numbers."""
    known = frozenset(name for text in (*told, unnamed) for name in paths_in(text))
    asked = dict.fromkeys(name for text in request for name in paths_in(text))
    names = list(paths_in(answer))
    named_here = await _on_disk((name for name in names if name not in asked and name not in known), source)
    missing = () if named_here else ungrounded(answer, seen_in((), (*request, *told), unnamed))
    if missing and await _on_disk((*asked, *names), source) is None:
        words = (word for text in request for word in _NAME.findall(text))
        missing = missing if await _on_disk(words, source, MOST_WORDS) else ()
    if not (named_here or missing):
        return None
    said, doubts = named_here or named(missing), frozenset(each.text for each in missing)
    return Fact(Reason(found=Found.NOT_LOOKED_UP, said=said), asked_once=True, doubts=doubts)


async def _on_disk(names: Iterable[str], source: EvidenceSource, most: int = LOOKED_FOR) -> str | None:
    """Return the first of these names that is a file, a directory or a broken link on disk."""
    for name in list(dict.fromkeys(names))[:most]:
        seen = await source.file(name)
        if seen.exists or seen.is_broken_link:
            return name
    return None
