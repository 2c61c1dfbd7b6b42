"""Parse `at:` of a patrol item, that is, weekdays with a time and a time zone, or a cron expression.

Examples are `at: Mon,Thu 9:00 Europe/Berlin` and a cron expression of five fields.

at: 9:00                       every day
at: weekdays 18:30             Monday to Friday
at: Mon 9:00 Europe/Berlin     in a time zone; without one, the machine's
at: */15 8-17 * * 1-5          cron: minute, hour, day of the month, month, day of the week
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_GROUPS = {"daily": "*", "weekdays": "1-5", "weekends": "0,6"}
_FIELD = r"[0-9A-Za-z*/,#-]+"
_CRON = re.compile(rf"(?=[0-9*])({_FIELD}(?:\s+{_FIELD}){{4}})(?=\s|$)")
_CLOCK = re.compile(r"(?:([A-Za-z]+(?:\s*[,-]\s*[A-Za-z]+)*)\s+)?([01]?\d|2[0-3])[:.]([0-5]\d)(?=[\s,;.:]|$)")
_ZONE = re.compile(r"\s+(UTC|[A-Z][A-Za-z]+(?:/[A-Za-z0-9_+-]+)+)(?=[\s,;.:]|$)")
_ENDS = re.compile(r"[\s,;.:]*")


class ClockProblem(ValueError):
    """A clock time that cannot be parsed. The text describes the allowed forms."""


@dataclass(frozen=True, slots=True)
class At:
    """A condition that is due at each time of the cron expression. The times are in `zone` (None: the time zone of
    the machine)."""

    cron: str
    zone: str | None = None

    def next_after(self, moment: datetime) -> datetime:
        """Return the first time after `moment`. Both times are aware. If daylight saving time begins or ends, the
        time is moved or skipped as in cron."""
        from cronsim import CronSim

        if self.zone is not None:
            return next(CronSim(self.cron, moment.astimezone(ZoneInfo(self.zone))))
        # The time zone of the machine has no name here. Local times without a zone are used, and `astimezone`
        # handles changes of the clock.
        return next(CronSim(self.cron, moment.astimezone().replace(tzinfo=None))).astimezone()


def read_at(text: str) -> tuple[At, str]:
    """Parse the clock time at the beginning of `text`, quoted or not. Return it with the text after it. Raises
    ClockProblem."""
    for quote in ('"', "'", "`"):
        if text.startswith(quote) and quote in text[1:]:
            inner, _, rest = text[1:].partition(quote)
            at, left = read_at(inner.strip())
            if left:
                raise ClockProblem(f"`at: {inner}`: {left!r} is no part of a time")
            return at, rest.strip()
    if found := _CRON.match(text):
        cron = found[1]
    elif found := _CLOCK.match(text):
        cron = f"{int(found[3])} {int(found[2])} * * {_days(found[1], text)}"
    else:
        raise ClockProblem(
            f"`at: {text[:40]}` is no time: write such as 9:00, Mon,Thu 9:00, weekdays 18:30, or a cron expression"
        )
    rest, zone = text[found.end() :], None
    if named := _ZONE.match(rest):
        zone, rest = named[1], rest[named.end() :]
    return _checked(At(cron, zone)), rest[_match_end(rest) :]


def _match_end(rest: str) -> int:
    found = _ENDS.match(rest)
    return 0 if found is None else found.end()


@lru_cache(maxsize=256)
def _checked(at: At) -> At:
    """Return the condition if its cron expression and its zone are valid. Raises ClockProblem."""
    from cronsim import CronSimError

    if at.zone is not None:
        try:
            ZoneInfo(at.zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ClockProblem(f"`{at.zone}` is no time zone: write such as Europe/Berlin, or UTC") from error
    try:
        at.next_after(datetime(2026, 1, 1).astimezone())
    except (CronSimError, StopIteration) as error:
        raise ClockProblem(f"`at: {at.cron}` is no cron expression: {error or 'it never comes'}") from error
    return at


def _days(words: str | None, text: str) -> str:
    """Return the field of a cron expression for weekdays such as `Mon`, `mon-fri`, `Tue, Thu` or `weekdays`."""
    if words is None:
        return "*"
    if group := _GROUPS.get(words.casefold()):
        return group
    pieces = re.split(r"\s*([,-])\s*", words)
    numbers = [piece if piece in ",-" else _day(piece, text) for piece in pieces]
    return "".join(numbers)


def _day(word: str, text: str) -> str:
    short = word.casefold()[:3]
    if short not in _DAYS or len(word) not in (3, *(len(each) for each in _LONG if each.startswith(short))):
        raise ClockProblem(f"`at: {text[:40]}`: {word!r} is no day; write such as Mon, Tue or weekdays")
    return str(_DAYS.index(short))


_LONG = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
