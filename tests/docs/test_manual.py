"""The man page is made of the commands that there are."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from artoo.cli.commands.group import SECTIONS
from artoo.cli.man_page import page


def test_every_command_has_its_place() -> None:
    """With its subcommands and options, in roff that no line of a help text can command."""
    written = page()
    listed = [name for table in SECTIONS.values() for name in table]
    for name in (*listed, "serve web", "config tune"):
        assert f"\n.SS artoo {name} " in written
    assert "\n.SS artoo config set [OPTIONS] KEY VALUE\n" in written
    assert r".B \-\-budget LIMITS" in written
    requests = {line.split(" ")[0] for line in written.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".TP", ".B", ".I"}


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_it_is_set_without_a_warning() -> None:
    """As the program reads it that shows manual pages."""
    ended = subprocess.run(
        ["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-z"],
        input=page(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
