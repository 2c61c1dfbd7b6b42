"""The symbols, the spinner, and the format of cost, money and loss in the display.

A terminal without Unicode shows `?` in place of a symbol.
"""

from __future__ import annotations

from decimal import Decimal

from artoo.contracts.solution import Cost, Decided, Money
from artoo.words.catalogue import Catalogue
from artoo.words.names import led_to
from artoo.words.shown import duration

MATCHED, FAILED, WAITING, OPEN = "✓", "✗", "·", "○"
BULLET, ARROW, DOT, BAR = "•", "→", " · ", "│"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""The frames of the animation that shows that an operation is running."""


def loss_line(decided: Decided, text: Catalogue) -> str:
    """Format a decision as `D 0.50  P 0.00  Ω 0.05  L 0.32  ∇L +0.00  → change path`."""
    loss = decided.loss
    return (
        f"D {loss.D:.2f}  P {loss.P:.2f}  Ω {loss.Omega:.2f}  L {loss.L:.2f}  "
        f"∇L {decided.grad_l:+.2f}  {ARROW} {led_to(decided, text)}"
    )


def round_line(decided: Decided, text: Catalogue, *, numbers: bool) -> str:
    """Describe the decision at the end of a round. With `numbers`, the figures of the control law are added."""
    if numbers:
        return loss_line(decided, text)
    return f"{ARROW} {led_to(decided, text)}"


def money_text(money: Money, text: Catalogue) -> str:
    """Format an amount of money as `0.0123 USD`, with the number of calls that have no price. A small amount is
    never rounded to zero."""
    amount = f"{money.amount:,.2f}" if money.amount >= 1 else f"{Decimal(f'{money.amount:.3g}'):f}"
    shown = f"{amount} {money.currency}"
    if money.unpriced_calls:
        forms = ("without price: {count} call", "without price: {count} calls")
        shown += f" ({text.count(*forms, money.unpriced_calls)})"
    return shown


def cost_line(cost: Cost, text: Catalogue, *, rounds: int) -> str:
    """Format the cost as `1 round · 2 model calls · 1,204 tokens (45% cached) · 3 tool calls · 4.1 s`."""
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
    return DOT.join(part for part in parts if part)
