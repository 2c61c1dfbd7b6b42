"""Ask before a command reaches hosts, in the words of that question, and report its connections and refusals."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.events import NetworkUsed
from artoo.contracts.execution import CallStatus
from artoo.ports.workspace import ignore_connection
from artoo.sandbox.network.allowlist import Destination, not_permitted
from artoo.sandbox.network.command_proxy import NO_NETWORK
from artoo.tools.approval.gate import Gate
from artoo.tools.core.tool import Outcome
from artoo.tools.files.paths import size_text
from artoo.tools.resume.in_flight import current_act
from artoo.tools.shell.network_header import Wanted
from artoo.words.catalogue import word
from artoo.words.question import command_lines

_SHOWN = 5
_DIAGNOSES = (
    "Name or service not known",
    "Temporary failure in name resolution",
    os.strerror(errno.ENETUNREACH),
    os.strerror(errno.ECONNREFUSED),
    "Couldn't connect to server",
)
"""Fixed messages by which the C library and network clients report that there is no network. Some are texts of
errno values."""


# --- asking -----------------------------------------------------------------------------------------------------


async def network_refusal(gate: Gate, program: str, text: str, asked: Wanted) -> Outcome | None:
    """Ask whether a command may reach the hosts that it requests. Return None if it may, otherwise the outcome of
    the refused call."""
    request = _question(gate, program, text, asked)
    refusal = await gate.refusal(request)
    if refusal is None:
        return None
    reason = f"nothing was run: {refusal.reason}"
    dropped = tuple(f"{act.verb} {act.target}" for act in request.acts)
    return Outcome(status=CallStatus.REFUSED, reason=reason, dropped=dropped, withheld_by=refusal.by)


def _question(gate: Gate, program: str, text: str, asked: Wanted) -> ConfirmationRequest:
    sources = (f"{one.name}: {one.source}" for one in gate.origins.foreign(asked.listed))
    return gate.question(
        ("network", program, text, str(asked)),
        f"{program}: {word('network', gate.language)} {asked}",
        _details(text, asked, gate.language),
        (*(("network", host) for host in asked.listed), *(("credential", name) for name in asked.credentials)),
        "; ".join(dict.fromkeys(sources)) or None,
    )


def _details(text: str, asked: Wanted, language: str) -> Iterator[str]:
    yield from command_lines(text)
    for host in asked.hosts:
        yield f"{word('network', language)} {host}"
    for name in asked.credentials:
        what = word("the command can read it and send it there", language)
        yield f"{word('credential', language)} ${name}: {what}"
    yield word("what it sends cannot be shown beforehand, nor taken back; hosts and bytes are logged", language)


# --- what happened ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Passed:
    """The number of bytes that were sent to one host and received from it."""

    out: int = 0
    into: int = 0


@dataclass(slots=True)
class Network:
    """The network use of one task's commands. It reports their connections, and records to which hosts data was
    sent.

    `publish` receives every connection. It must return quickly and must not raise. `by_option`: true if a person
    requests hosts with `--network`. Otherwise the first line of a command requests them.
    """

    publish: Callable[[NetworkUsed], None] = ignore_connection
    by_option: bool = False
    _passed: dict[str, Passed] = field(default_factory=dict[str, Passed])

    def went_out(self) -> tuple[str, ...]:
        """Describe, in one line for each host, how much data left this machine. This data cannot be taken back."""
        return tuple(
            f"{host}: {size_text(each.out)} sent, {size_text(each.into)} received"
            for host, each in self._passed.items()
        )

    def restore(self, used: Iterable[NetworkUsed]) -> None:
        """Restore the connections of earlier processes of the task."""
        for one in used:
            self._add(one)

    def hearing(self) -> Hearing:
        """Return a listener for the connections of the command that the current call runs."""
        return Hearing(self, current_act())

    def hear(self, used: NetworkUsed) -> None:
        """Record a connection that has ended or was refused."""
        self._add(used)
        self.publish(used)

    def _add(self, used: NetworkUsed) -> None:
        if used.bytes_out:
            passed = self._passed.setdefault(str(Destination(used.host, used.port)), Passed())
            passed.out += used.bytes_out
            passed.into += used.bytes_in


@dataclass(slots=True)
class Hearing:
    """Receives the connections of one command. Refused connections are collected, once for each host, for the
    command's record."""

    network: Network
    act: str
    refused: dict[str, str] = field(default_factory=dict[str, str])

    def __call__(self, used: NetworkUsed) -> None:
        """Record a connection of the command. Implements `ports.workspace.OnConnection`."""
        self.network.hear(used.model_copy(update={"act": self.act}))
        if used.refused is not None:
            name = str(Destination(used.host, used.port)) if used.host else ""
            self.refused.setdefault(name, used.refused)

    def explained(self, outcome: Outcome, asked: Wanted, denied: Iterable[str] = ()) -> Outcome:
        """Add to the outcome the connections that were refused, and how to request them.

        `denied`: hosts to which the sandbox refused a connection. They are reported whatever the exit code is.
        """
        for host in denied:
            self.refused.setdefault(host, not_permitted(host))
        if not asked.hosts and not self.refused:
            said = outcome.error_output + outcome.output
            failed = outcome.status is not CallStatus.OK and any(words in said for words in _DIAGNOSES)
            # Only the proxy prints this text, so it is reliable even if the command hides its failure.
            if not failed and NO_NETWORK not in said:
                return outcome
            return _because(
                outcome,
                "commands have no network, and localhost is their own; if that is why, run it again with "
                f"{'options that ask' if self.network.by_option else 'a first line that asks'} for what it must "
                f"reach, as in: {self._asking(('pypi.org', 'localhost:8000'))}",
            )
        if not self.refused:
            return outcome
        listed = list(dict.fromkeys(self.refused.values()))
        reason = f"refused at the network's edge: {'; '.join(listed[:_SHOWN])}"
        missing = [name for name, why in self.refused.items() if why == not_permitted(name)]
        if missing:
            named = str(asked).split() if asked.hosts else []
            reason += f"; {self._asking_for_more(named, missing[:_SHOWN])}"
        return _because(outcome, reason)

    def _asking_for_more(self, asked: Sequence[str], missing: Sequence[str]) -> str:
        """Explain how to request more hosts. A new first line must repeat all hosts, whereas an option is added to
        the earlier options."""
        if self.network.by_option:
            return f"to ask for it too: {self._asking(missing)}"
        return f"to ask for it too, let the first line be: {self._asking((*asked, *missing))}"

    def _asking(self, hosts: Iterable[str]) -> str:
        """Write a request for hosts in the form that the user or model would type."""
        if self.network.by_option:
            return " ".join(f"--network {shlex.quote(host)}" for host in hosts)
        return f"# artoo hosts: {' '.join(hosts)}"


def _because(outcome: Outcome, reason: str) -> Outcome:
    return replace(outcome, reason="; ".join(filter(None, (outcome.reason, reason))))
