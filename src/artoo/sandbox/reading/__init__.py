"""The readable part of the machine for commands, with hidden paths, environment, mounts and programs."""
