"""Files on disk as everything else here needs them: there whole, or not at all."""
