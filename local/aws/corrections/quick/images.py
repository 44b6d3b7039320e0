"""A few of EC2's public images: moto loads 1,200 for each account and region, which takes a quarter second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.ec2.models import amis


@contextmanager
def quick_images() -> Iterator[None]:
    """While it is open, an account has moto's 44 images of all regions; those of the one region are not loaded."""
    with patch.object(amis, "load_resource", _none):
        yield


def _none(path: str) -> Any:
    raise FileNotFoundError(path)
