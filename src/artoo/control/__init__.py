"""The control law as pure functions, with loss, decision cascade, hyperparameters, and memory mathematics."""
