"""The one service that reviews, applies, keeps and discards what a task changed."""
