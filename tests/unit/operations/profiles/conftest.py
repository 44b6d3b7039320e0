"""A world whose clusters can have profiles."""

from __future__ import annotations

import pytest

from tests.unit.operations.profiles import packs_world as worlds


@pytest.fixture
def packs_world() -> worlds.PacksWorld:
    return worlds.packs_world()
