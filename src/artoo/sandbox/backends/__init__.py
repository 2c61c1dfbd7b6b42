"""The backends that confine commands: bubblewrap with an overlay, Landlock or seatbelt over a copy, or none."""
