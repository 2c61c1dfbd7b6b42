"""Ways to confine commands: bubblewrap with an overlay, Landlock or seatbelt over a copy, or none."""
