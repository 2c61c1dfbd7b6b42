"""The file goes to another name than the request says."""

from __future__ import annotations

from bases import Base, single, write

from faults import LiveFault, with_budget

FAULT = LiveFault(with_budget(Base("Write the word hi to out.txt", single(write("other.txt", "hi\\n"))), calls=2))
