"""The roles of a task, fed from its log: to check that they decide the same, or to go on where they stopped.

log ──► Recording ──► Conductor ──► fresh roles ──► what they say is held against the log
                          └──► the end of the log: compare and stop (replay), or go live (resume)
"""
