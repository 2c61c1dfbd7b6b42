"""Run the roles of a task again from its log, to check that they decide the same, or to resume an interrupted task.

log ──► Recording ──► Conductor ──► new roles ──► their messages are compared with the log
                          └──► at the end of the log: stop (replay), or continue live (resume)
"""
