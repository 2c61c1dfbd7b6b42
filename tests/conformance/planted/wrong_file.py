"""The answer comes from another file than the request names; another way finds out."""

from __future__ import annotations

from bases import Base, python, shell, single
from planting import LiveFault

WAYS = (shell("wc -l < b.txt"), python("print(len(open('a.txt').readlines()))"))
FAULT = LiveFault(Base("How many lines has a.txt?", single(*WAYS), options={"verify": True}))
