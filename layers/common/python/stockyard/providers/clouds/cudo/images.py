"""Public image of Cudo that a machine starts from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stockyard.errors import VendorRefused

_STABLE = 2404
"""The Ubuntu release that everything is tested on, as Cudo writes it in ids: ``ubuntu-2404``."""
_UBUNTU = re.compile(r"ubuntu-(?P<release>[0-9]{4})(?P<rest>(-[a-z0-9.]+)*)", re.ASCII)
_DRIVER = "-nvidia-"


def choose(images: Sequence[str], *, gpu: bool, development: bool) -> str:
    """The id of the image for a machine, with NVIDIA's driver where it has GPUs.

    The stable channel is Ubuntu 24.04; with a driver, its newest such image, or that of the newest older release. The
    development channel is the newest release that there is an image of. Raises ``VendorRefused`` where there is none.
    """
    best: tuple[int, str] | None = None
    for image in images:
        match = _UBUNTU.fullmatch(image)
        if match is None or (_DRIVER in f"{match['rest']}-") is not gpu or (not gpu and match["rest"]):
            continue
        release = int(match["release"])
        if development or release == _STABLE or (gpu and release < _STABLE):
            best = max(best or (0, ""), (release, image))
    if best is None:
        kind = "with NVIDIA's driver" if gpu else "for machines without GPUs"
        raise VendorRefused(f"Cudo lists no image of Ubuntu {kind}", hint="Ask Cudo which images it has.")
    return best[1]
