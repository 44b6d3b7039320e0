"""The environment as settings: what is wrong is named."""

from __future__ import annotations

import pytest

from stockyard import kubernetes_versions, settings

TABLE = {"STOCKYARD_TABLE": "t"}


@pytest.mark.parametrize("version", kubernetes_versions.TESTED)
def test_a_tested_kubernetes_is_taken(version: str) -> None:
    assert settings.read({**TABLE, "STOCKYARD_KUBERNETES_VERSION": version}).kubernetes_version == version
    assert settings.read(TABLE).kubernetes_version == kubernetes_versions.DEFAULT in kubernetes_versions.TESTED


@pytest.mark.parametrize("version", ["1.31", "1.9", "1.34.1", "2.0", "1.", "latest"])
def test_another_kubernetes_is_refused_by_name(version: str) -> None:
    with pytest.raises(ValueError, match=r"STOCKYARD_KUBERNETES_VERSION is .*must be 1\.34 or 1\.35"):
        settings.read({**TABLE, "STOCKYARD_KUBERNETES_VERSION": version})


def test_how_soon_an_agent_comes_again_is_a_setting() -> None:
    names = ("agent_busy_seconds", "agent_quiet_seconds", "agent_idle_seconds")
    assert [getattr(settings.read(TABLE), name) for name in names] == [10, 60, 300]
    read = settings.read(
        {**TABLE, **{f"STOCKYARD_{name.upper()}": str(number) for number, name in enumerate(names, 1)}}
    )
    assert [getattr(read, name) for name in names] == [1, 2, 3]
    with pytest.raises(ValueError, match="STOCKYARD_AGENT_BUSY_SECONDS"):
        settings.read({**TABLE, "STOCKYARD_AGENT_BUSY_SECONDS": "soon"})
