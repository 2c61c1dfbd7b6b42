"""The file goes to another name than the request says."""

from __future__ import annotations

from bases import Base, exists, single, write
from planting import LiveFault, with_budget

ELSEWHERE = single(write("other.txt", "hi\\n"), criteria=[exists("out.txt")])
FAULT = LiveFault(with_budget(Base("Write the word hi to out.txt", ELSEWHERE), calls=2))
