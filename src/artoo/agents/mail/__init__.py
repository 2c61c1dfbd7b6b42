"""Letters between agents and the operator, with delivery, replies, wake-ups, and records for the stream."""
