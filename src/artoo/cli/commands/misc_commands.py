"""`artoo help`, `artoo version`, `artoo chat` and `artoo completion` for bash, zsh and fish.

Users type these words as commands, so they are no requests.
"""

from __future__ import annotations

import click

from artoo.cli.commands.options import HELP

SHELLS = ("bash", "zsh", "fish")
_LOADING = {
    "bash": 'eval "$(artoo completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(artoo completion zsh)"   in ~/.zshrc',
    "fish": "artoo completion fish | source   in ~/.config/fish/config.fish",
}


@click.command("help", context_settings=HELP)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(context: click.Context, words: tuple[str, ...]) -> None:
    """Show all commands, or the help of COMMAND."""
    here = context.find_root()
    for word in words:
        command = here.command.get_command(here, word) if isinstance(here.command, click.Group) else None
        if command is None:
            hint = "artoo help lists them; a request that begins so: artoo run help …"
            raise click.UsageError(f"There is no command {' '.join(words)!r}; {hint}", context)
        here = click.Context(command, info_name=word, parent=here)
    click.echo(here.get_help())


@click.command(context_settings=HELP)
def version() -> None:
    """Show the version."""
    from artoo.cli.version import version_line

    click.echo(version_line())


@click.command(context_settings=HELP)
@click.option("-c", "--continue", "latest", is_flag=True, help="Continue the last conversation.")
@click.option("--session", metavar="NAME", help="Start or continue the conversation with this name.")
@click.pass_context
def chat(context: click.Context, latest: bool, session: str | None) -> None:
    """Start a conversation, like `artoo` alone."""
    from artoo.cli.conversation.repl import converse

    context.exit(converse(name=session, latest=latest))


@click.command(context_settings=HELP, epilog="; ".join(_LOADING.values()))
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion of artoo's commands and options for SHELL."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "artoo", "_ARTOO_COMPLETE").source())
