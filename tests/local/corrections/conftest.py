"""An account whose cluster has no machines yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.worlds.eks_setting import WAYS, Setting, eks_setting


@pytest.fixture(params=WAYS, ids=lambda wire: "wire" if wire else "direct")
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    """An account with the cluster ``demo``; files without one have a setting of their own."""
    with eks_setting(wire=request.param) as setting:
        setting.cluster()
        setting.look()
        yield setting
