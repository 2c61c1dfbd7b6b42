"""Files for tools, with search, walk, glob patterns, decoding, diffs and documents."""
