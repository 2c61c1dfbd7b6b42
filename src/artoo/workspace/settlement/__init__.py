"""The only service that reviews, applies, keeps and discards the changes of a task."""
