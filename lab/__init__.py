"""Hold the paper's claims as experiments, each with what would refute it (SPEC section 16): `python -m lab`.

    world ──► job ──► minds (scripted models) ──► real roles on the real bus ──► trace ──► tables, findings

The world, the models' behaviour and time are simulated; bus, R1 to R7, checks, control law, memory and Dreamer
are those that every task runs on.
"""
