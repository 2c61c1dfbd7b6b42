"""Replay of a task from its log, for a check of its decisions, for what-if questions, and to resume it.

log ──► Recording ──► Conductor ──► new roles ──► their messages are compared with the log
                          └──► at the end of the log: stop (replay), or continue live (resume)
"""
