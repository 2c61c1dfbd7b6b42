"""The answer "always" to a question for approval, which adds `allow` lines to the configuration file."""

from __future__ import annotations

import os
from collections.abc import Iterable

from artoo.cli.results.result_view import permission_for
from artoo.contracts.confirmation import AskedAct

_KINDS = frozenset({"network", "credential", "recipient", "tool"})
"""The operations that can be allowed for ever. The skills, hooks and servers of a project are not among them,
because they are approved by their content."""


def lines_for(acts: Iterable[AskedAct]) -> tuple[str, ...]:
    """Return the permission lines for exactly these operations. Return no line if one of them cannot be permitted
    by a line."""
    lines: list[str] = []
    for act in acts:
        line = permission_for(act)
        if line is None or act.verb not in _KINDS or act.sensitive:
            return ()
        lines.append(line)
    return tuple(dict.fromkeys(lines))


def allow_always(lines: Iterable[str]) -> str:
    """Add lines to `allow` in the configuration file. Return the path of the file. Raises ConfigurationError."""
    from artoo.runtime.app.home import config_file, default_home
    from artoo.runtime.config.loader import checked, read_config
    from artoo.settings.text_file import bytes_of, decoded, put
    from artoo.settings.yaml_edit import with_value

    file = config_file(default_home(os.environ))
    text = decoded(bytes_of(file) or b"", file)
    wanted = dict.fromkeys((*read_config(file, {}).allow, *lines))
    changed = with_value(text, ["allow"], list(wanted))
    checked(changed, file, {})
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    put(file, changed)
    return str(file)
