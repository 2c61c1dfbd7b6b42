"""The checks of `artoo doctor`, for machine, models, sandbox and team."""
