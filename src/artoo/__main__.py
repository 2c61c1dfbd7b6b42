"""`python -m artoo`."""

from __future__ import annotations

import sys

from artoo.cli.main import main

sys.exit(main())
