"""Signs and numbers of the display, with an ASCII form for terminals that cannot show the others."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from artoo.contracts.solution import Cost, Decided, Money
from artoo.words.catalogue import Catalogue
from artoo.words.names import led_to
from artoo.words.shown import duration


@dataclass(frozen=True, slots=True)
class Marks:
    """One set of signs. `spinner` holds the frames of something that is going on."""

    matched: str
    failed: str
    waiting: str
    open: str
    bullet: str
    arrow: str
    dot: str
    bar: str
    omega: str
    gradient: str
    spinner: str


UNICODE: Final = Marks("✓", "✗", "·", "○", "•", "→", " · ", "│", "Ω", "∇L", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
ASCII: Final = Marks("+", "x", ".", "o", "-", "->", ", ", "|", "Omega", "gradL", "|/-\\")


def marks_for(encoding: str | None) -> Marks:
    """The signs that an output stream of this encoding can show."""
    try:
        "".join(getattr(UNICODE, name) for name in Marks.__slots__).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def loss_line(decided: Decided, marks: Marks, text: Catalogue) -> str:
    """`D 0.50  P 0.00  Ω 0.05  L 0.32  ∇L +0.00  → change path`."""
    loss = decided.loss
    return (
        f"D {loss.D:.2f}  P {loss.P:.2f}  {marks.omega} {loss.Omega:.2f}  L {loss.L:.2f}  "
        f"{marks.gradient} {decided.grad_l:+.2f}  {marks.arrow} {led_to(decided, text)}"
    )


def round_line(decided: Decided, marks: Marks, text: Catalogue, *, numbers: bool) -> str:
    """What a round led to, in words; with `numbers` the control law's figures too."""
    if numbers:
        return loss_line(decided, marks, text)
    return f"{marks.arrow} {led_to(decided, text)}"


def money_text(money: Money, text: Catalogue) -> str:
    """`0.0123 USD`, with how many calls have no price. A small amount is never rounded away."""
    amount = f"{money.amount:,.2f}" if money.amount >= 1 else f"{Decimal(f'{money.amount:.3g}'):f}"
    shown = f"{amount} {money.currency}"
    if money.unpriced_calls:
        forms = ("without price: {count} call", "without price: {count} calls")
        shown += f" ({text.count(*forms, money.unpriced_calls)})"
    return shown


def cost_line(cost: Cost, marks: Marks, text: Catalogue, *, rounds: int) -> str:
    """`1 round · 2 model calls · 1,204 tokens (45% cached) · 0.0123 USD · 3 tool calls · 4.1 s`."""
    tokens = text.count("{count} token", "{count} tokens", cost.prompt_tokens + cost.completion_tokens)
    if cost.cached_tokens and cost.prompt_tokens:
        share = f"{min(1.0, cost.cached_tokens / cost.prompt_tokens):.0%}"
        tokens += f" ({text('{share} cached', share=share)})"
    parts = [
        text.count("{count} round", "{count} rounds", rounds) if rounds else "",
        text.count("{count} model call", "{count} model calls", cost.llm_calls),
        tokens,
        money_text(cost.money, text) if cost.money is not None else "",
        text.count("{count} tool call", "{count} tool calls", cost.tool_calls),
        duration(cost.elapsed_ms),
    ]
    return marks.dot.join(part for part in parts if part)
