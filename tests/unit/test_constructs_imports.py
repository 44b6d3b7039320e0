"""Import rules of the constructs and their handler, which users install without the product."""

from __future__ import annotations

from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parents[2]


def test_constructs_and_handler_keep_their_import_rules(capsys) -> None:
    code = lint_imports(config_filename=str(ROOT / "constructs" / ".importlinter"), no_cache=True)
    assert code == 0, capsys.readouterr().out
