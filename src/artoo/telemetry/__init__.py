"""OpenTelemetry spans and metrics, built from the message stream."""
