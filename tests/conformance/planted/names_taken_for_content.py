"""A question about what files contain is answered with a list of names; another way finds out."""

from __future__ import annotations

from bases import Base, python, single
from planting import LiveFault

LOOK = "import glob\nprint(*(name for name in glob.glob('*.*') if 'ERROR' in open(name).read()))"
FAULT = LiveFault(
    Base(
        "Which of the files here contains the text ERROR?",
        single(
            {"tool": "find_files", "input": "*.txt", "is_final": True},
            python(LOOK),
        ),
        options={"verify": True},
    )
)
