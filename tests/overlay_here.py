"""The sandbox backend that tests of whole tasks need: it is there, or this machine forbids it, or a test fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.sandbox.backends.diagnostics import BackendDiagnosis, is_explained
from artoo.sandbox.backends.select import diagnose, open_backend
from artoo.sandbox.protocols import Backend


async def overlay_backend(artoo_home: Path) -> Backend:
    """Return the backend with an overlay; skip where this machine has or allows none.

    A backend that should work here and does not is no reason to skip: the tests of what it protects would be silent
    exactly when it is broken.
    """
    tried: list[BackendDiagnosis] = []
    backend = await open_backend(artoo_home, tried.append)
    if backend.has_overlay:
        return backend
    for diagnosis in tried or await diagnose(artoo_home):
        if diagnosis.backend == "bubblewrap" and not is_explained(diagnosis):
            pytest.fail(f"bubblewrap is installed and does not work: {diagnosis.cause}")
    pytest.skip("no overlay can be mounted here")
