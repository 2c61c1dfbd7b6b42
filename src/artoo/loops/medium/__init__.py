"""The medium loop of a task, with perceiver, planner, dispatcher, meta-validator, solver and endings."""
