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
    "run": Mounted("artoo.cli.commands.run_command", "run", "Do what TEXT asks (also: artoo TEXT)."),
    "chat": Mounted("artoo.cli.commands.misc_commands", "chat", "Talk (also: artoo alone)."),
    "resume": Mounted(
        "artoo.cli.commands.resume_command", "resume", "Go on with a task that stopped before its end."
    ),
    "doctor": Mounted("artoo.cli.commands.doctor_command", "doctor", "Check this machine and say what to mend."),
    "init": Mounted("artoo.cli.commands.init_command", "init", "Write a commented configuration."),
    "sandbox": Mounted("artoo.cli.commands.sandbox_command", "sandbox", "Run one command under the gate."),
    "diff": Mounted(
        "artoo.cli.commands.changes_commands", "diff", "Show what a task would change, that waits for you."
    ),
    "apply": Mounted("artoo.cli.commands.changes_commands", "apply", "Apply what a task changed, or a part of it."),
    "discard": Mounted("artoo.cli.commands.changes_commands", "discard", "Drop what a task changed."),
    "undo": Mounted("artoo.cli.commands.undo_command", "undo", "Put back what a task changed."),
    "ps": Mounted("artoo.cli.commands.running_commands", "ps", "Show what tasks left running."),
    "say": Mounted("artoo.cli.commands.running_commands", "say", "Write to a task that runs."),
    "stop": Mounted("artoo.cli.commands.running_commands", "stop", "Stop what a task left running."),
    "laws": Mounted("artoo.cli.commands.laws_command", "laws", "Show the Four Laws and what enforces them."),
    "log": Mounted("artoo.cli.commands.log_command", "log", "Look at what tasks did."),
    "audit": Mounted(
        "artoo.cli.commands.audit_command", "audit", "What the Auditor saw; whether logs were changed."
    ),
    "serve": Mounted("artoo.cli.commands.serve_command", "serve", "Let the standing agents work."),
    "worker": Mounted("artoo.cli.commands.serve_command", "worker", "Work for agents of other machines."),
    "web": Mounted("artoo.cli.commands.web_command", "web", "Watch and settle tasks in a browser."),
    "agent": Mounted(
        "artoo.cli.commands.agent_command", "agent", "Standing agents: make, show, trust, pause them."
    ),
    "task": Mounted("artoo.cli.commands.task_command", "task", "The board of tasks that agents work on."),
    "mail": Mounted("artoo.cli.commands.mail_command", "mail", "Letters between you and the agents."),
    "status": Mounted(
        "artoo.cli.commands.status_command", "status", "What waits for you, and the team at a glance."
    ),
    "store": Mounted("artoo.cli.commands.store_command", "store", "The PostgreSQL that several machines share."),
    "memory": Mounted("artoo.cli.commands.memory_command", "memory", "Look at what was learnt."),
    "model": Mounted(
        "artoo.cli.commands.model_command", "model_group", "The local model: list, fetch, choose, remove."
    ),
    "tune": Mounted(
        "artoo.cli.commands.tune_command", "tune", "Better numbers for the control law, from your own logs."
    ),
    "skill": Mounted(
        "artoo.cli.commands.skill_command", "skill", "Skills, and what you said to those of projects."
    ),
    "config": Mounted(
        "artoo.cli.commands.config_command", "config", "Look at the configuration, or change one value."
    ),
    "acp": Mounted("artoo.cli.commands.acp_command", "acp", "Serve editors (Agent Client Protocol)."),
    "mcp": Mounted("artoo.cli.commands.mcp_command", "mcp", "Serve MCP to other programs; MCP servers to use."),
    "a2a": Mounted("artoo.cli.commands.a2a_command", "a2a", "Serve foreign agents (Agent2Agent); letters to them."),
    "completion": Mounted("artoo.cli.commands.misc_commands", "completion", "Completion for bash, zsh or fish."),
    "version": Mounted("artoo.cli.commands.misc_commands", "version", "Show the version."),
    "help": Mounted("artoo.cli.commands.misc_commands", "help_", "Show what there is, or what a command does."),
}

DEFAULT_COMMAND = "run"
