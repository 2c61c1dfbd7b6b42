"""What was proposed and what was accepted: `tuning.json` in the home, and the person's configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import Field, ValidationError

from artoo.contracts.base import Contract
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.app.home import CONFIG_NAME
from artoo.runtime.config.loader import checked
from artoo.runtime.config.model import Config, Control
from artoo.runtime.tuning.proposing import ALL, Proposed
from artoo.settings.text_file import bytes_of, decoded, put

FILE = "tuning.json"
MOST_ACCEPTED = 1_000


class Proposal(Proposed):
    """A proposal under its number, when all criteria of a task are worth `worth` calls."""

    number: int
    worth: float
    at: datetime


class Accepted(Contract):
    """A proposal that stands in the configuration. `was`: what stood there; None: nothing."""

    proposal: Proposal
    at: datetime
    was: float | None = None


class Tuning(Contract):
    """The file. `last` is the highest number that was given, so that none means two things."""

    last: int = 0
    proposals: tuple[Proposal, ...] = ()
    accepted: tuple[Accepted, ...] = Field(default=(), max_length=MOST_ACCEPTED)


def load(home: Path) -> Tuning:
    """Empty when there is none. Raises ConfigurationError for one that cannot be read."""
    path = home / FILE
    try:
        return Tuning.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Tuning()
    except (OSError, ValidationError) as error:
        raise ConfigurationError(f"{path} cannot be read ({error}); put it aside and run `artoo tune`") from error


def propose(home: Path, found: Sequence[Proposed], worth: float, at: datetime) -> tuple[Proposal, ...]:
    """Keeps what is proposed now in the place of what was proposed before; accepted ones stay."""
    tuning = load(home)
    numbered = tuple(
        Proposal(**each.model_dump(), number=tuning.last + number, worth=worth, at=at)
        for number, each in enumerate(found, 1)
    )
    _write(home, tuning.model_copy(update={"proposals": numbered, "last": tuning.last + len(numbered)}))
    return numbered


def accept(home: Path, number: int, at: datetime) -> Accepted:
    """Writes a proposal into the configuration.

    Raises ConfigurationError when there is no such proposal, or when the number is not any more what it was.
    """
    tuning = load(home)
    proposal = next((each for each in tuning.proposals if each.number == number), None)
    if proposal is None:
        raise ConfigurationError(f"there is no proposal {number}; `artoo tune` makes and shows them")
    text, config = _configuration(home)
    now = in_effect(config.control, proposal.type, proposal.name)
    if now != proposal.before:
        raise ConfigurationError(
            f"{proposal.name} is {now:g} now and was {proposal.before:g} when this was proposed; "
            "run `artoo tune` again"
        )
    from artoo.settings.yaml_edit import with_value

    accepted = Accepted(proposal=proposal, at=at, was=_own(config.control, proposal.type, proposal.name))
    _change(home, lambda: with_value(text, route(proposal), _written(proposal.name, proposal.value)))
    left = tuple(each for each in tuning.proposals if each.number != number)
    known = (*tuning.accepted, accepted)[-MOST_ACCEPTED:]
    _write(home, tuning.model_copy(update={"proposals": left, "accepted": known}))
    return accepted


def revoke(home: Path, number: int) -> Accepted:
    """Puts back what stood in the configuration before. Raises ConfigurationError when that was changed since."""
    tuning = load(home)
    accepted = next((each for each in tuning.accepted if each.proposal.number == number), None)
    if accepted is None:
        raise ConfigurationError(f"nothing was accepted under {number}; `artoo tune list` shows what was")
    proposal = accepted.proposal
    text, config = _configuration(home)
    now = _own(config.control, proposal.type, proposal.name)
    if now != proposal.value:
        raise ConfigurationError(
            f"{'.'.join(route(proposal))} was changed since; edit {home / CONFIG_NAME}, and nothing here"
        )
    from artoo.settings.yaml_edit import with_value, without_value

    was = accepted.was
    _change(
        home,
        lambda: (
            without_value(text, route(proposal))
            if was is None
            else with_value(text, route(proposal), _written(proposal.name, was))
        ),
    )
    left = tuple(each for each in tuning.accepted if each is not accepted)
    _write(home, tuning.model_copy(update={"accepted": left}))
    return accepted


def route(proposal: Proposal) -> tuple[str, ...]:
    """Where it stands in the configuration."""
    section = ("control",) if proposal.type == ALL else ("control", "by_type", proposal.type)
    return (*section, proposal.name)


def in_effect(control: Control, type_: str, name: str) -> float:
    """A number as it holds for a type of tasks."""
    general = control.hyperparameters()
    return float(getattr(control.tuned(general).get(type_, general), _field(name)))


def _own(control: Control, type_: str, name: str) -> float | None:
    """What the configuration itself says there; None: nothing."""
    section = control if type_ == ALL else control.by_type.get(type_)
    if section is None or _field(name) not in section.model_fields_set:
        return None
    own: float | None = getattr(section, _field(name))
    return None if own is None else float(own)


def _written(name: str, value: float) -> float:
    """As the configuration takes it."""
    return int(value) if name == "kill_after" else value


def _field(name: str) -> str:
    return "lambda_" if name == "lambda" else name


def _configuration(home: Path) -> tuple[str, Config]:
    """The file, without the environment: what is accepted is written there and nowhere else."""
    path = home / CONFIG_NAME
    text = decoded(bytes_of(path) or b"", path)
    return text, checked(text, path, {})


def _change(home: Path, changed: Callable[[], str]) -> None:
    path = home / CONFIG_NAME
    text = changed()
    checked(text, path, {})
    put(path, text)


def _write(home: Path, tuning: Tuning) -> None:
    put(home / FILE, tuning.model_dump_json(indent=1) + "\n")
