"""Facts against a result, exact and few: what its calls' records say, and tokens that stand nowhere (Law 0)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall
from artoo.contracts.failure import FailureClass, failure_class
from artoo.contracts.findings import Found, Reason
from artoo.contracts.shortened import last_part, shortened
from artoo.evidence.grounding import named, own_words, seen_in, ungrounded
from artoo.evidence.tokens import Token, paths_in, words_of
from artoo.ports.evidence import EvidenceSource

LOOKED_FOR = 12  # names in a text that are looked for on disk
_SAID = 160
_AS_IT_STANDS = "Where the request leaves that open, give figures, times and quotations as the outputs have them."
_OWN_QUOTE = "Words of your own stand without quotation marks."
_WORKED_OUT = "Write a figure that is worked out with what it is worked out from, as in a + b = c or a / b = p %."
_OWN_WORDS = "What a call printed of its own input shows nothing."


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that stands against a result. `asked_once`: one correction is worth its call. `advice`: what may
    mend it, for the model. `nowhere`: the tokens that stand nowhere, all of them.
    """

    message: str | Reason
    failure_class: FailureClass = FailureClass.LOGICAL
    identities: tuple[str, ...] = ()
    contradicts: bool = True
    asked_once: bool = False
    advice: str = ""
    nowhere: frozenset[str] = frozenset()


def rests_on_nothing(calls: Iterable[ToolCall]) -> bool:
    """Whether no call shows anything: none was made, or they printed what was written into them."""
    return all(map(own_words, calls))


def broken_act(result: ExecutionResult) -> Fact | None:
    """What the records say against a result that calls itself completed, or that there is none."""
    count, claimed = len(result.tool_calls), result.status != "uncertain"
    unknown = [number for number in (*result.sources, *result.failures) if not 1 <= number <= count]
    if unknown:
        return Fact(Reason(found=Found.NO_CALL, subject=str(unknown[0]), said=str(count)))
    number = _deciding_act(result)
    if number and number not in result.failures:
        call = result.tool_calls[number - 1]
        ended = _how_it_ended(number, call, cited=number in result.sources)
        if ended is not None:
            telling = f'An answer that tells of it says "failures": [{number}].'
            advice = telling if claimed and not result.small_model else ""
            return Fact(ended, call.failure_class, call.identity, claimed or bool(call.dropped), advice=advice)
    if not claimed:
        return Fact(Reason(found=Found.NO_RESULT, said=shortened(result.output, _SAID)), contradicts=False)
    if not result.output.strip():
        return Fact(Reason(found=Found.EMPTY), contradicts=False)
    return None


def _deciding_act(result: ExecutionResult) -> int:
    """The number of the last call that went out; of the last of all when every one was turned away; 0: none. Each
    program of a small model is a whole way by itself: one that it comes back to decides, since nothing has changed
    after it, and not the way that failed in between."""
    if result.small_model and result.put_out_by is not None:
        return result.put_out_by
    ran = [number for number, call in enumerate(result.tool_calls, 1) if not call.never_ran]
    return ran[-1] if ran else len(result.tool_calls)


def _how_it_ended(number: int, call: ToolCall, *, cited: bool) -> Reason | None:
    """What is wrong with a last call; None when an answer may rest on it. One that says no is what the answer may
    report, if it names it as a source."""
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
            if cited and call.says_no:
                return None
            code = "" if call.exit_code is None else f"exit {call.exit_code}"
            words = last_part((call.error_output or call.reason or call.output).strip(), _SAID)
            found, said = Found.FAILED, ": ".join(filter(None, (code, words)))
        case CallStatus.OK:
            printed = set(words_of(call.output)) - set(words_of(call.input))
            if printed or call.changed_something or failure_class(call.error_output) is FailureClass.LOGICAL:
                return None
            found, said = Found.SAYS_ONLY, last_part(call.error_output.strip(), _SAID)
    return Reason(found=found, subject=f"{call.tool} [{number}]", said=said)


async def floating_tokens(
    result: ExecutionResult, request: Sequence[str], around: Callable[[], Awaitable[str]], source: EvidenceSource
) -> Fact | None:
    """Tokens of the answer that stand nowhere; what costs a look (at the difference, the listing that `around`
    makes, the paths) is looked at only when something is missing."""
    calls = result.tool_calls
    if result.put_out_by is not None and not own_words(calls[result.put_out_by - 1]):
        return None
    seen = seen_in(calls, request)
    missing: Sequence[Token] = ungrounded(result.output, seen)
    if missing:
        changed = await source.difference() if any(call.changed_something for call in calls) else ""
        wider = ungrounded(result.output, seen.wider(changed, await around()))
        missing = [each for each in wider if each.kind != "path" or not (await source.file(each.text)).exists]
    if not missing:
        return None
    if refuted := dict.fromkeys(each.refuted for each in missing if each.refuted):
        return Fact(Reason(found=Found.MISCALCULATED, said="; ".join(refuted)))
    advice = [_AS_IT_STANDS, *([_WORKED_OUT] if any(each.number is not None for each in missing) else [])]
    advice += [_OWN_QUOTE] if any(each.kind == "quote" for each in missing) else []
    advice += [_OWN_WORDS] if not result.small_model and any(map(own_words, calls)) else []
    found, texts = Reason(found=Found.NOWHERE, said=named(missing)), frozenset(each.text for each in missing)
    return Fact(found, asked_once=True, advice=" ".join(advice), nowhere=texts)


async def own_knowledge(
    answer: str, request: Sequence[str], source: EvidenceSource, told: Sequence[str] = ()
) -> Fact | None:
    """An answer without any call may say what it likes of the world, but not of files that are here: it names one
    that the request does not, or states tokens where either names one. What its author was `told` may be said.
    """
    known = frozenset(name for text in told for name in paths_in(text))
    asked = dict.fromkeys(name for text in request for name in paths_in(text))
    names, missing = list(paths_in(answer)), tuple[Token, ...]()
    said = await _on_disk((name for name in names if name not in asked and name not in known), source)
    if said is None and await _on_disk((*asked, *names), source) is not None:
        missing = ungrounded(answer, seen_in((), (*request, *told)))
        said = named(missing) if missing else None
    if said is None:
        return None
    texts = frozenset(each.text for each in missing)
    return Fact(Reason(found=Found.NOT_LOOKED_UP, said=said), asked_once=True, nowhere=texts)


async def _on_disk(names: Iterable[str], source: EvidenceSource) -> str | None:
    """The first of these names that is a file, a directory or a broken link here."""
    for name in list(dict.fromkeys(names))[:LOOKED_FOR]:
        seen = await source.file(name)
        if seen.exists or seen.is_broken_link:
            return name
    return None
