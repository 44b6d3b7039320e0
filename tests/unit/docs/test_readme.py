"""README, CONTRIBUTING and the documents name only what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
PRODUCT = ROOT / "layers" / "common" / "python" / "stockyard"
GENERATED = ("cdk.out/workflows",)
RELATIVE = ("document.py", "provider.py", "machines.py", "planning.py")
"""Files that each provider's or driver's folder has."""


def section(title: str) -> str:
    """The text below a heading of the second level."""
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def first_cells(text: str) -> list[str]:
    """The first cells of a table's rows, without its head."""
    return [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]


def test_the_tree_names_what_is_there_and_everything_that_is_there():
    named = [path for cell in first_cells(section("The tree")) for path in re.findall(r"`([^`]+)`", cell)]
    assert [path for path in named if not (ROOT / path).exists()] == []
    tops = {path.split("/")[0] for path in named}
    rooms = {
        path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".") and any(path.iterdir())
    }
    assert rooms - tops - {"cdk.out", "__pycache__"} == set()


def test_the_targets_named_are_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        text = document.read_text()
        blocks = "\n".join(re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL))
        named = set(re.findall(r"`make ([a-z-]+)", text)) | set(re.findall(r"^make ([a-z-]+)", blocks, re.MULTILINE))
        assert named - targets == set(), document.name
    assert {"run", "test"} <= set(re.findall(r"^make ([a-z-]+)", README, re.MULTILINE))


def test_the_paths_that_contributing_names_are_there():
    """A path without a first folder is in the product; ``x`` and ``<name>`` stand for any name."""
    quoted = re.findall(r"`([\w<>./-]*(?:/|\.py|\.md|\.js|\.json|\.sh|\.in)[\w<>./-]*)`", CONTRIBUTING)
    paths = [path for path in quoted if path not in (*GENERATED, *RELATIVE) and "<" not in path and "/x/" not in path]
    assert len(paths) > 30
    folders = (ROOT, PRODUCT, PRODUCT / "providers" / "clouds" / "aws", PRODUCT / "machines" / "on_machine")
    assert [path for path in paths if not any((folder / path).exists() for folder in folders)] == []


def test_the_files_of_words_are_there():
    paths = re.findall(r"\(`([\w/.]+\.\w+)`\)", (ROOT / "docs" / "glossary.md").read_text())
    assert len(paths) > 50
    assert [path for path in paths if not any((folder / path).exists() for folder in (ROOT, PRODUCT))] == []


def test_the_files_that_a_folders_own_readme_names_are_there():
    """Beside it, or in the product or the project."""
    missing = []
    for readme in (*PRODUCT.rglob("README.md"), ROOT / "agent" / "README.md", ROOT / "client" / "README.md"):
        for path in re.findall(r"`([a-z_0-9/]+(?:\.py|[a-z_0-9]/))`", readme.read_text()):
            if not any((folder / path).exists() for folder in (readme.parent, PRODUCT, ROOT)):
                missing.append(f"{readme.relative_to(ROOT)}: {path}")
    assert missing == []


def test_index_of_decisions_has_each_decision_and_its_title():
    folder = ROOT / "docs" / "decisions"
    rows = re.findall(
        r"^\| (\d+) \| \[(.+)\]\((\S+)\) \| (in force|replaced by)", (folder / "README.md").read_text(), re.M
    )
    titles = {path.name: path.read_text().splitlines()[0] for path in folder.glob("0*.md")}
    assert {name: f"# {number}. {title}" for number, title, name, _ in rows} == titles
    assert len(rows) == len(titles)


def test_readme_is_short():
    assert len(README.splitlines()) <= 150


def test_the_threat_model_names_tests_that_are_there():
    paths = set(re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "security.md").read_text()))
    assert len(paths) > 12
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_alarm_is_explained():
    monitoring = (ROOT / "stacks" / "constructs" / "monitoring.py").read_text()
    alarms = re.findall(r'_alarm\(\s*"([a-z-]+)"', monitoring)
    explained = (ROOT / "docs" / "operations.md").read_text()
    assert len(alarms) > 8
    assert [alarm for alarm in alarms if f"`{alarm}`" not in explained] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []
