"""The entry point of `python -m artoo`, which starts the command line."""

import sys

from artoo.cli.start import main

sys.exit(main())
