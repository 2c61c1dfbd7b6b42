"""artoo as an agent of an editor by ACP, with sessions, permissions, models, modes and commands.

It uses the official library. Its sessions use the intake.
"""
