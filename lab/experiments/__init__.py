"""One module an experiment: its claims first, then its arms, then how its rows are judged."""
