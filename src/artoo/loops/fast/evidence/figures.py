"""Which figures of a claim the evidence contains: same value, unit and thing, from something that was read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from artoo.contracts.execution import ToolCall
from artoo.loops.fast.evidence.calls import CallView, views_of
from artoo.loops.fast.evidence.claims import Clause, Stance, clauses_of
from artoo.loops.fast.evidence.effects import inline_code
from artoo.loops.fast.evidence.names import mentions, names_in
from artoo.loops.fast.evidence.quantity import UNITS, Quantity, literal_tokens, quantities
from artoo.loops.fast.evidence.words import words

MOST_LINES = 400
"""Lines of one call's output that are read one by one."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure of the evidence: where it stands, and the unit that its command gives it when it carries none."""

    quantity: Quantity
    line: str
    view: CallView
    implied: str = ""


_INJECTED = re.compile(
    r"^\W*(?:system|assistant|developer|instruction|ai|user)\s*(?:prompt|note|message)?\s*[:：\]]"
    r"|\b(?:ignore|disregard|forget) (?:all |any |the )?(?:previous|prior|above|earlier)"
    r"|\b(?:report|say|tell|answer|claim|state|reply|respond|pretend) (?:to )?(?:the )?(?:user"
    r" |person |human )?(?:that|with)\b|\byou (?:must|should|are to) (?:say|report|tell"
    r"|answer|claim)|<\|?(?:im_start|system)|(?:请|必须|务必)(?:回答|报告|告诉|声称|回复)|忽略(?:之前|以上"
    r"|前面)",
    re.I,
)


def read_lines(view: CallView) -> tuple[str, ...]:
    """The output lines that count as read from the machine.

    Left out: what the command's own echo put there, and lines of content that speak to an assistant.
    """
    if view.invented:
        return ()
    literals = tuple(literal for literal in view.literals if re.search(r"\w", literal))
    kept: list[str] = []
    for line in (view.call.output + "\n" + view.call.error_output).splitlines()[: 2 * MOST_LINES]:
        for literal in literals:
            line = line.replace(literal, " ") if len(literal) > 1 or line.strip() == literal else line
        if line.strip() and not _INJECTED.search(line):
            kept.append(line)
    return tuple(kept)


def implied_unit(view: CallView) -> str:
    """The unit of a command's bare figures: `du -k` means KiB, `stat` and `ls -l` bytes, `wc -l` lines."""
    for step in reversed(view.steps):
        flags = "".join(
            word.lstrip("-") for word in step.args if word.startswith("-") and not word.startswith("--")
        )
        match step.program:
            case "du" | "df" if "h" not in flags:
                return (
                    "B"
                    if "b" in flags
                    else "MiB"
                    if "m" in flags or "-BM" in step.args
                    else "GiB"
                    if "-BG" in step.args
                    else "KiB"
                )
            case "free" if "h" not in flags:
                return "MiB" if "m" in flags else "GiB" if "g" in flags else "B" if "b" in flags else "KiB"
            case "stat" if "%s" in step.text or "-f%z" in step.text:
                return "B"
            case "ls" if "l" in flags and "h" not in flags:
                return "B"
            case "wc" if flags in ("c", "l", "w", "m") and len(view.steps) > 0:
                return {"c": "B", "l": "lines", "w": "words", "m": "characters"}[flags]
            case _:
                code = inline_code(step)
                if code and re.search(r"getsize|st_size", code) and not re.search(r"1024|1000|1e\d|\*\*|<<", code):
                    return "B"
    return ""


def facts_of(views: Iterable[CallView]) -> tuple[Fact, ...]:
    """Every figure that the calls' outputs contain."""
    found: list[Fact] = []
    for view in views:
        implied = implied_unit(view)
        header = ""
        for line in read_lines(view):
            if not quantities(line):
                header = line
            named = _header_unit(header) or _header_unit(line)
            found += [Fact(each, line, view, each.unit or named or implied) for each in _figures(line)]
        found += _own_figures(view)
    return tuple(found)


def _figures(line: str) -> list[Quantity]:
    """A line's figures; `120,200` is read both as one figure and as two fields."""
    figures = list(quantities(line))
    for index in range(len(figures) - 2, -1, -1):
        following = figures[index + 1]
        if not figures[index].unit and following.unit and line[figures[index].end : following.start] == "/":
            figures[index] = replace(figures[index], unit=following.unit)
    for each in figures[:50]:
        if "," in each.text:
            figures += [quantity for part in each.text.split(",") for quantity in quantities(part)]
    return figures


_HEADER = re.compile(
    r"[_( /](kb|mb|gb|kib|mib|gib|bytes|ms|sec|seconds|min|minutes|hours|kg|g|lb|lbs|cm"
    r"|mm|km|usd|eur|gbp|cny|percent|pct|°?[cf])\b",
    re.I,
)


def _header_unit(line: str) -> str:
    units = {
        quantities(f"1 {match[1]}")[0].unit
        for match in _HEADER.finditer(line)
        if len(match[1]) > 1 or match[0][0] == "_"
    }
    return units.pop() if len(units) == 1 else ""


def _own_figures(view: CallView) -> list[Fact]:
    """Figures about the call itself: exit code, number of results, duration."""
    call = view.call
    own = [] if call.exit_code is None else [(float(call.exit_code), "")]
    own += [] if call.result_count is None else [(float(call.result_count), "")]
    own += [(call.duration_ms / 1000, "s")] if call.duration_ms else []
    return [Fact(Quantity(value, 1, unit), "", view, unit) for value, unit in own]


def counts_of(view: CallView, clause: Clause) -> frozenset[int]:
    """Sizes of the lists that the call shows: all lines, lines of one kind, lines with a word of the clause."""
    lines = [line for line in read_lines(view) if not re.match(r"total \d+\s*$", line)][:MOST_LINES]
    if not lines or view.call.truncated:
        return frozenset()
    if _cut_off(view, len(lines)) and not _PARTS.search(clause.text):
        return frozenset({len([part for part in lines[0].split(",") if part.strip()])} - {1})
    sizes = {len(lines), len(lines) - 1, len({line.strip() for line in lines})}
    words = [word for line in lines for word in line.split()]
    sizes.add(len([part for part in lines[0].split(",") if part.strip()]))
    if len(lines) == 1 and len(words) > 1:
        sizes |= {len(words), len([part for part in lines[0].split(",") if part.strip()])}
    for token in _tokens(clause.text):
        sizes.add(sum(_has_token(line, token) for line in lines))
    for extension in {
        match[1].lower() for line in lines for match in [re.search(r"\.(\w{1,5})\W*$", line)] if match
    }:
        if extension in clause.text.lower() or _LANGUAGES.get(extension, "\0") in clause.text.lower():
            sizes.add(sum(bool(re.search(rf"\.{re.escape(extension)}\W*$", line, re.I)) for line in lines))
    directories = sum(line.startswith("d") or line.rstrip().endswith("/") for line in lines)
    return frozenset({*sizes, directories, len(lines) - directories} - ({0} if lines else set()))


_PARTS = re.compile(r"\b(?:first|last|top|bottom|latest|newest|oldest|largest|smallest|biggest)\b|前|后|最", re.I)
"""Words that say that a part is meant."""


def _cut_off(view: CallView, shown: int) -> bool:
    """Whether `head` or `tail` showed as many lines as it may: then there may be more, and nothing was counted."""
    for step in view.steps:
        sizes = [int(found[1]) for word in step.args if (found := re.fullmatch(r"-?n?(\d{1,9})", word))]
        if step.program in ("head", "tail") and shown >= (sizes[0] if sizes else 10):
            return True
    return False


_LANGUAGES = {
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
    "md": "markdown",
    "txt": "text",
    "rs": "rust",
    "rb": "ruby",
    "sh": "shell",
    "jpg": "image",
    "png": "image",
    "yml": "yaml",
}
_COMMON = frozenset(
    words(
        """the and are was were there that this with has have for from not all file files line lines total
        found contains only exactly which of in is it its"""
    )
)


def _tokens(text: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"[a-z_]{3,}|[一-鿿]{2}", text.lower()) if word not in _COMMON)


def _has_token(line: str, token: str) -> bool:
    low = line.lower()
    return token in low or (token.endswith("s") and len(token) > 4 and token[:-1] in low)


def fits(claimed: Quantity, fact: Fact, *, loose: float = 0.0) -> bool:
    """Whether a claimed figure is the evidence's figure: equal, rounded, or converted to the claimed unit."""
    found, unit = fact.quantity, fact.quantity.unit or fact.implied
    if claimed.unit and unit and claimed.kind == UNITS[unit][0]:
        if claimed.kind in ("money", "degree"):
            return claimed.unit == unit and _near(claimed, found.value, loose)
        bases = [found.value * UNITS[unit][1] / UNITS[claimed.unit][1]]
        if claimed.kind == "bytes":
            bases += [found.value * a / b for a in _sizes(unit) for b in _sizes(claimed.unit)]
        return any(
            _near(claimed, base, loose, found.step * UNITS[unit][1] / UNITS[claimed.unit][1]) for base in bases
        )
    if claimed.unit and unit:
        return False
    if (
        claimed.unit == "%"
        and _near(Quantity(claimed.value / 100, claimed.step / 100), found.value, loose)
        and found.step < 1
    ):
        return True
    if claimed.kind == "bytes" and claimed.unit != "B" and found.value >= 1000 and _converted(claimed, found.value):
        return True
    return _near(claimed, found.value, loose)


def _converted(claimed: Quantity, value: float) -> bool:
    return any(_near(claimed, value / size, 0.0) for size in _sizes(claimed.unit))


def _sizes(unit: str) -> tuple[float, ...]:
    """A byte unit's decimal and binary size: people and programs mix them."""
    power = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}[unit[0]]
    return (1000.0**power, 1024.0**power)


def _near(claimed: Quantity, value: float, loose: float, grain: float = 0.0) -> bool:
    """Equal up to the claimed figure's own rounding; an integer stands for a longer figure only from 10 on."""
    difference = abs(claimed.value - value)
    if difference <= 1e-9 * max(1.0, abs(value)):
        return True
    if loose and difference <= loose * abs(value):
        return True
    whole = float(value).is_integer() and not grain
    if claimed.step >= 1 and (abs(value) < 10 or (whole and claimed.step == 1)):
        return False
    return difference <= claimed.step / 2 * (1 + 1e-6)


_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|nearly|almost|some|circa)|[~≈约]|大约|大概|将近|接近|左右)\s*$",
    re.I,
)
_COMPARED = re.compile(
    r"\b(?:more|less|fewer|higher|lower|faster|slower|increase|decrease|growth|grew|fell"
    r"|rose|(?<!make )(?<!makes )(?<!made )(?<!take )(?<!takes )up|down)\b|增长|增加|减少|下降|提高",
    re.I,
)
_AFTER_ABOUT = re.compile(r"^\s*(?:左右|or so|-ish)", re.I)
_MORE = re.compile(
    r"(?:\b(?:more than|over|above|at least|upwards of|exceeding)|超过|多于|至少|不少于|>=?|≥)\s*$", re.I
)
_LESS = re.compile(
    r"(?:\b(?:less than|under|below|at most|fewer than|up to)|少于|不到|至多|不超过|<=?|≤)\s*$", re.I
)
_ROLE = re.compile(
    r"(?:\b(?:first|last|top|bottom|step|line|column|row|port|page|chapter|section|version"
    r"|python|older than|larger than|bigger than|smaller than|within|every|exit code|status"
    r"|code|level|attempt|pid|limit|than)|第|前|后|最后|端口|版本|大于|小于|超过)\s*[:#]?\s*$",
    re.I,
)


def supporting(claimed: Quantity, clause_text: str, facts: Sequence[Fact]) -> list[Fact]:
    """The facts that carry a claimed figure, in the sense of its own words (about, more than, less than)."""
    before, after = clause_text[: claimed.start], clause_text[claimed.end :]
    if _MORE.search(before):
        return [
            fact
            for fact in facts
            if claimed.value <= fact.quantity.value <= claimed.value * 2 + 1 and _same_kind(claimed, fact)
        ] or [fact for fact in facts if fits(claimed, fact)]
    if _LESS.search(before):
        return [
            fact
            for fact in facts
            if claimed.value / 2 - 1 <= fact.quantity.value <= claimed.value and _same_kind(claimed, fact)
        ] or [fact for fact in facts if fits(claimed, fact)]
    loose = 0.1 if _ABOUT.search(before) or _AFTER_ABOUT.match(after) else 0.0
    return [fact for fact in facts if fits(claimed, fact, loose=loose)]


def _same_kind(claimed: Quantity, fact: Fact) -> bool:
    unit = fact.quantity.unit or fact.implied
    return not claimed.unit or not unit or claimed.unit == unit


def derived(claimed: Quantity, facts: Sequence[Fact]) -> bool:
    """Whether a figure is the plain sum, difference or share of a few figures of one call."""
    facts = [fact for fact in facts if claimed.unit == "%" or _same_kind(claimed, fact)]
    for index in {fact.view.index for fact in facts}:
        values = list(
            dict.fromkeys(fact.quantity.value for fact in facts if fact.view.index == index and fact.line)
        )
        everything = [fact.quantity.value for fact in facts if fact.view.index == index and fact.line]
        if len(everything) > 1 and _near(claimed, sum(everything), 0.0):
            return True
        if not 2 <= len(values) <= 6:
            continue
        pairs = [(a, b) for a in values for b in values if a != b]
        if claimed.unit == "%":
            whole = _whole(values)
            shares = [100 * a / b for a, b in pairs if 0 < a < b] + [100 * a / whole for a in values if whole]
            if any(_near(claimed, share, 0.0) for share in shares):
                return True
        elif any(_near(claimed, a + b, 0.0) for a, b in pairs) or any(
            _near(claimed, a - b, 0.0) for a, b in pairs if a > b > 0 and a - b > 1
        ):
            return True
    return False


def _whole(values: Sequence[float]) -> float:
    """What the values are parts of: their sum, or the largest, where the rest already add up to it."""
    largest = max(values)
    rest = sum(values) - largest
    return largest if abs(rest - largest) <= 1e-9 * abs(largest) else sum(values)


def plays_a_role(quantity: Quantity, text: str) -> bool:
    """Whether the figure is part of the question (`the first 5`, `port 8080`, `larger than 100 MB`)."""
    return _ROLE.search(text[: quantity.start]) is not None


def asked_for(quantity: Quantity, text: str) -> bool:
    """Whether the same figure stands in what was asked: a request, or a command's own words."""
    return any(each.value == quantity.value for each in quantities(text))


@dataclass(frozen=True, slots=True)
class Grounding:
    """One figure of a claim and the facts that carry it; `by` says how when it is not a plain match."""

    clause: Clause
    quantity: Quantity
    facts: tuple[Fact, ...] = ()
    by: str = ""

    @property
    def grounded(self) -> bool:
        """Whether the evidence contains the figure."""
        return bool(self.facts) or bool(self.by)


def ground(
    clause: Clause, text: str, views: Sequence[CallView], facts: Sequence[Fact], intent: str
) -> list[Grounding]:
    """Looks for every figure of one clause. `text` is the clause with its names blanked."""
    found: list[Grounding] = []
    for quantity in clause.quantities:
        carried = tuple(supporting(quantity, text, facts))
        by = "" if carried else _otherwise(clause, quantity, text, views, facts, intent)
        found.append(Grounding(clause, quantity, carried, by))
    return found


def _otherwise(
    clause: Clause, quantity: Quantity, text: str, views: Sequence[CallView], facts: Sequence[Fact], intent: str
) -> str:
    asked = "\n".join(view.asked for view in views)
    wanted = clause.stance is Stance.ABSENT or plays_a_role(quantity, text)
    if wanted and (asked_for(quantity, asked) or asked_for(quantity, intent)):
        return "asked"
    if quantity.value.is_integer() and quantity.kind in ("", "lines"):
        if any(int(quantity.value) in counts_of(view, clause) for view in views):
            return "counted"
        if quantity.value == 0 and any(view.empty_handed for view in views):
            return "counted"
        if (
            quantity.kind == ""
            and quantity.value == len(clause.names)
            and all(any(mentions(view.said, name) or view.names(name) for view in views) for name in clause.names)
        ):
            return "listed"
    if clause.stance is Stance.DONE or clause.effects:
        acting = [view for view in views if view.acts]
        if any(asked_for(quantity, view.asked) for view in acting):
            return "done so"
        sizes = (
            [len(view.operands) for view in acting] + [len(view.call.changes) for view in acting] + [len(acting)]
        )
        sizes += [len([name for name in names_in(view.asked) if "." in name]) for view in acting]
        if int(quantity.value) in sizes:
            return "done so"
    digits = re.match(r"\d[\d,.]*\d", quantity.text)
    if (
        digits
        and not quantity.unit
        and (quantity.value >= 100 or "." in digits[0])
        and any(
            re.search(rf"(?<![\d.]){re.escape(digits[0])}(?!\d)", line)
            for view in views
            for line in read_lines(view)
        )
    ):
        return "literal"
    compared = quantity.unit == "%" and _COMPARED.search(text) is not None
    if not compared and (derived(quantity, facts) or _between_calls(quantity, facts)):
        return "derived"
    return ""


def _between_calls(claimed: Quantity, facts: Sequence[Fact]) -> bool:
    """The difference or sum of two calls' only figures: 25 lines before, 8 after, 17 fewer."""
    single: list[float] = []
    for index in {fact.view.index for fact in facts if fact.line}:
        values = {fact.quantity.value for fact in facts if fact.line and fact.view.index == index}
        single += list(values) if len(values) == 1 else []
    if len(single) > 4 or claimed.unit == "%":
        return False
    return any(claimed.value in (a + b, a - b) for a in single for b in single if a > b)


def ungrounded_tokens(clause: Clause, said: str, asked: str) -> tuple[str, ...]:
    """Dates, times, versions and hashes of a clause that stand nowhere in evidence or request."""
    everything = f"{said}\n{asked}".lower()
    return tuple(
        token
        for token in literal_tokens(clause.text)
        if token.lower() not in everything
        and not _date_elsewhere(token, everything)
        and token.lower().lstrip("v") not in everything
    )


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def _date_elsewhere(token: str, text: str) -> bool:
    """The same day written otherwise: 2024-11-21 for `Nov 21`, 2024/11/21 for 2024-11-21."""
    parts = re.match(r"(\d{4})[-/年](\d{1,2})[-/月](\d{1,2})日?$", token)
    if not parts or not 1 <= int(parts[2]) <= 12:
        return False
    month, day = int(parts[2]), int(parts[3])
    forms = (
        f"{parts[1]}-{month:02}-{day:02}",
        f"{parts[1]}/{month:02}/{day:02}",
        f"{_MONTHS[month - 1]} {day:>2}",
        f"{_MONTHS[month - 1]} {day}",
        f"{day} {_MONTHS[month - 1]}",
    )
    return any(form in text for form in forms)


def grounded_numbers(
    claim: str, tool_calls: Sequence[ToolCall], *, intent: str = ""
) -> tuple[tuple[str, bool], ...]:
    """Every figure of a claim as it is written, and whether the evidence contains it."""
    from artoo.loops.fast.evidence.names import without_names

    views = views_of(tool_calls)
    facts = facts_of(views)
    return tuple(
        (found.quantity.text, found.grounded)
        for clause in clauses_of(claim)
        if clause.stance is not Stance.TALK
        for found in ground(clause, without_names(clause.text), views, facts, intent)
    )
