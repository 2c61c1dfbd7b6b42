"""Read a workspace's files from outside the sandbox, with the same content that its commands see."""
