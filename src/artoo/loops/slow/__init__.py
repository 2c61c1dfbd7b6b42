"""The slow loop, that is, the Dreamer, with its passes, its steps, and rules worded by a model."""
