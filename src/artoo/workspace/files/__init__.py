"""Reading of a workspace's files from outside, through layers, copies or the sandbox's root."""
