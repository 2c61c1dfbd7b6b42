"""Read and write files atomically."""
