"""`python -m artoo`."""

import sys

from artoo.cli.start import main

sys.exit(main())
