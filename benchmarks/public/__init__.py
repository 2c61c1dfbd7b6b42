"""Public data that the laboratory is held against: `python -m lab run NAME --data PATH`."""
