"""Sums of floating-point numbers without any rounding.

A float is an integer times a power of two, so a sum of floats is one too. Kept as mantissa and exponent with
Python's integers, it is exact: adding and taking away again leaves nothing behind, and order does not matter.
Running sums in floats would drift with every delete.
"""

from __future__ import annotations

import math

_FLOAT_BITS = 1_000
"""Longer integers do not fit into a float before they are scaled."""


_COMPACT_BITS = 256


class ExactSum:
    """mantissa · 2**exponent, with exponent ≤ 0. Mutable; `reduced` gives the one form that equal sums share."""

    __slots__ = ("exponent", "mantissa")

    def __init__(self, mantissa: int = 0, exponent: int = 0) -> None:
        self.mantissa = mantissa
        self.exponent = exponent

    def add(self, value: float) -> None:
        """Adds a finite float, exactly."""
        numerator, denominator = value.as_integer_ratio()
        self.add_ratio(numerator, denominator.bit_length() - 1)

    def add_ratio(self, numerator: int, halvings: int) -> None:
        """Adds numerator / 2**halvings: a float that was taken apart before."""
        shift = halvings + self.exponent
        if shift > 0:
            self.mantissa = (self.mantissa << shift) + numerator
            self.exponent -= shift
        else:
            self.mantissa += numerator << -shift

    def scaled(self, factor: float) -> float:
        """This sum times a float, to within two roundings."""
        excess = self.mantissa.bit_length() - _FLOAT_BITS
        if excess > 0:
            return math.ldexp(self.mantissa >> excess, self.exponent + excess) * factor
        return math.ldexp(self.mantissa, self.exponent) * factor

    def compact(self) -> ExactSum:
        """This sum, in lowest terms when it has grown long: a tiny entry that is gone leaves a long tail."""
        if self.mantissa.bit_length() > _COMPACT_BITS:
            self.mantissa, self.exponent = self.reduced()
        return self

    def reduced(self) -> tuple[int, int]:
        """(mantissa, exponent) with the smallest mantissa that keeps the exponent ≤ 0."""
        if not self.mantissa:
            return 0, 0
        trailing = (self.mantissa & -self.mantissa).bit_length() - 1
        spare = min(trailing, -self.exponent)
        return self.mantissa >> spare, self.exponent + spare
