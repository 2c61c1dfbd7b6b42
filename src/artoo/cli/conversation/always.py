"""The answer "always" to a question: lines of permission, written into the user's configuration."""

from __future__ import annotations

import os
from collections.abc import Iterable

from artoo.contracts.confirmation import AskedAct
from artoo.contracts.errors import ConfigurationError

_KINDS = frozenset({"network", "credential", "recipient", "tool"})
"""Operations that can be allowed for ever. A project's skills, hooks and servers are approved by their content."""


def lines_for(acts: Iterable[AskedAct]) -> tuple[str, ...]:
    """Return the lines that permit exactly these operations; none if one of them is not for a line."""
    from artoo.runtime.app.run_options import check_policy_line

    lines: list[str] = []
    for act in acts:
        line = f"{act.verb} {act.target.partition(' ')[0] if act.verb == 'tool' else act.target}"
        try:
            check_policy_line(line)
        except ConfigurationError:
            return ()
        if act.verb not in _KINDS or act.sensitive:
            return ()
        lines.append(line)
    return tuple(dict.fromkeys(lines))


def allow_always(lines: Iterable[str]) -> str:
    """Add lines to `allow` of the configuration, and return where they are. Raises ConfigurationError."""
    from artoo.runtime.app.home import CONFIG_NAME, default_home
    from artoo.runtime.config.loader import checked, read_config
    from artoo.settings.text_file import bytes_of, decoded, put
    from artoo.settings.yaml_edit import with_value

    file = default_home(os.environ) / CONFIG_NAME
    text = decoded(bytes_of(file) or b"", file)
    wanted = dict.fromkeys((*read_config(file, {}).allow, *lines))
    changed = with_value(text, ["allow"], list(wanted))
    checked(changed, file, {})
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    put(file, changed)
    return str(file)
