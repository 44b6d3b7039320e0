"""Images are chosen by release and driver, whatever else Cudo lists."""

from __future__ import annotations

import pytest

from stockyard.errors import VendorRefused
from stockyard.providers.clouds.cudo.images import choose

LISTED = (
    "alpine-linux-317",
    "debian-12",
    "ubuntu-2204",
    "ubuntu-2204-nvidia-535-docker-v20240214",
    "ubuntu-2404",
    "ubuntu-2404-desktop",
    "ubuntu-2404-nvidia-550-docker-v20241017",
    "ubuntu-2404-nvidia-570-docker-v20250801",
    "ubuntu-2504",
    "ubuntu-minimal-2404",
    "windows-server-2022",
)


def test_stable_channel_is_the_release_that_is_tested() -> None:
    assert choose(LISTED, gpu=False, development=False) == "ubuntu-2404"
    assert choose(LISTED, gpu=True, development=False) == "ubuntu-2404-nvidia-570-docker-v20250801"


def test_development_channel_is_the_newest_release() -> None:
    assert choose(LISTED, gpu=False, development=True) == "ubuntu-2504"
    newer = (*LISTED, "ubuntu-2504-nvidia-575-docker-v20250901")
    assert choose(newer, gpu=True, development=True) == "ubuntu-2504-nvidia-575-docker-v20250901"


def test_older_driver_image_does_where_the_stable_release_has_none() -> None:
    older = ("ubuntu-2404", "ubuntu-2204-nvidia-535-docker-v20240214", "ubuntu-2504-nvidia-575-docker-v20250901")
    assert choose(older, gpu=True, development=False) == "ubuntu-2204-nvidia-535-docker-v20240214"


def test_without_an_image_that_will_do_the_refusal_says_which_is_missing() -> None:
    with pytest.raises(VendorRefused, match="with NVIDIA's driver"):
        choose(("ubuntu-2404", "ubuntu-2504"), gpu=True, development=False)
    with pytest.raises(VendorRefused, match="without GPUs"):
        choose(("ubuntu-2204", "ubuntu-2404-desktop"), gpu=False, development=False)
