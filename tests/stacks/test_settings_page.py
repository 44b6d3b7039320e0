"""``docs/settings.md`` is that of the code, and has each setting."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from stacks import settings_page
from stacks.config import CHECKS, StageConfig


def test_page_is_that_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_page.main(["--check"]) == 0
    monkeypatch.setattr(settings_page, "PAGE", tmp_path / "settings.md")
    assert settings_page.main(["--check"]) == 1, "a page that is absent"
    assert settings_page.main([]) == 0
    settings_page.PAGE.write_text(settings_page.page().replace("true or false", "yes or no"))
    assert settings_page.main(["--check"]) == 1, "a page that says something else"


def test_each_setting_has_a_check_a_row_and_a_default() -> None:
    names = {field.name for field in fields(StageConfig)} - {"stage"}
    assert names == set(CHECKS)
    page = settings_page.page()
    assert [name for name in names if f"\n| `{name}` | " not in page] == []
    for row in ("| `audience` | `stockyard` |", "| `allow_own_account` | `false` |", "| `issuer` | required |"):
        assert row in page
