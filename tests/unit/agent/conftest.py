"""One cluster with an agent for a test."""

from __future__ import annotations

import pytest

from tests.unit.agent.rig import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()
