"""What is read and written here is UTF-8, whatever the machine's locale says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from artoo.world.open_settings import EXTRACT

_ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
_LAID = """
import sys
from pathlib import Path
from artoo.ports.sandbox import Roots
from artoo.world.open_settings import lay_git_extract
home = Path(sys.argv[1])
lay_git_extract(Roots(home, home / "workspace", home / "project"), home / "scratch", "/tmp")
"""


def test_a_name_for_commits_keeps_its_letters_under_an_ascii_locale(tmp_path: Path) -> None:
    """It was written as the locale says, which ended the command that was to see it."""
    settings = "[user]\n\tname = Ünal 王\n\temail = u@example.org\n[credential]\n\thelper = store\n"
    (tmp_path / ".gitconfig").write_text(settings, encoding="utf-8")
    (tmp_path / "scratch").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _LAID, str(tmp_path)], env={**os.environ, **_ASCII}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    laid = (tmp_path / "scratch" / EXTRACT).read_text(encoding="utf-8")
    assert "Ünal 王" in laid and "helper" not in laid
