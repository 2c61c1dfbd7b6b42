"""artoo as an A2A server, with cards, tasks on the board, push notifications and outward requests.

It uses the official SDK. The tasks of foreign agents are added to the team's board.
"""
