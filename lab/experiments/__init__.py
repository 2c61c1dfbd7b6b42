"""Define each experiment in one module: its claims first, then its arms, then how its rows are judged."""
