"""Which commands there are: one line each, loaded when they are called."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mounted:
    """A command: the module and attribute that hold it, and what `artoo --help` says about it."""

    module: str
    attribute: str
    summary: str


COMMANDS: dict[str, Mounted] = {
    "run": Mounted("artoo.cli.run_command", "run", "Do what TEXT asks (also: artoo TEXT)."),
    "doctor": Mounted("artoo.cli.doctor_command", "doctor", "Check this machine and say what to mend."),
    "init": Mounted("artoo.cli.init_command", "init", "Write a commented configuration."),
    "sandbox": Mounted("artoo.cli.sandbox_command", "sandbox", "Run one command under the gate."),
    "undo": Mounted("artoo.cli.undo_command", "undo", "Put back what a task changed."),
    "laws": Mounted("artoo.cli.laws_command", "laws", "Show the Four Laws and what enforces them."),
    "log": Mounted("artoo.cli.log_command", "log", "Look at what tasks did."),
    "memory": Mounted("artoo.cli.memory_command", "memory", "Look at what was learnt."),
    "model": Mounted("artoo.cli.model_command", "model_group", "The local model: list, fetch, choose, remove."),
}

DEFAULT_COMMAND = "run"
