"""Law 0 in code: an answer is a claim, tool calls are the ground truth (SPEC section 3). No I/O, no model."""

from artoo.loops.fast.evidence.assess import Assessment, assess
from artoo.loops.fast.evidence.calls import primary_calls
from artoo.loops.fast.evidence.figures import grounded_numbers
from artoo.loops.fast.evidence.finding import Finding
from artoo.loops.fast.evidence.names import names_in

__all__ = ["Assessment", "Finding", "assess", "grounded_numbers", "names_in", "primary_calls"]
