"""What artoo itself says to a person, in their language: fields in, sentences out. Every surface uses the same."""
