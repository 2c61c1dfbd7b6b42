"""The settlement service, with review, partial apply, pending records, history and crash recovery."""
