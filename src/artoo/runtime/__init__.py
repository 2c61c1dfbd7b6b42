"""The assembly of artoo, with application, configuration, tasks, approvals, changes, replay and tuning."""
