"""Contains commands, reads what they change, and makes or forgets the changes as one act (SPEC section 8)."""
