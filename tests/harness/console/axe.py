"""axe-core, which judges pages for people who use keys or a screen reader; npm fetches it once, for tests alone."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from tests.harness.browser import Tab

VERSION = "4.10.3"
SHA512 = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
CACHE = Path(__file__).resolve().parents[3] / ".cache" / "axe"
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


class NoAxe(Exception):
    """axe-core cannot be had here; the text says why."""


@functools.cache
def source() -> str:
    """The script. Raises ``NoAxe``."""
    archive = CACHE / f"axe-core-{VERSION}.tgz"
    if not archive.exists():
        if shutil.which("npm") is None:
            raise NoAxe("npm is not installed, which fetches axe-core")
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", f"axe-core@{VERSION}", "--silent"]
        try:
            subprocess.run(command, cwd=CACHE, check=True, capture_output=True, timeout=120)
        except (subprocess.SubprocessError, OSError) as error:
            raise NoAxe(f"npm could not fetch axe-core {VERSION} ({type(error).__name__})") from None
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != SHA512:
        raise AssertionError(f"{archive.name} is not the one that was looked at: {digest}")
    with tarfile.open(archive) as packed:
        file = packed.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


def violations(tab: Tab) -> list[str]:
    """Rules that the page breaks as it is now, each with the first places. The policy of the page holds meanwhile."""
    if not tab.evaluate("typeof axe === 'object'"):
        tab.evaluate(source() + "; 1")
    options = json.dumps({"runOnly": {"type": "tag", "values": list(TAGS)}, "resultTypes": ["violations"]})
    broken: list[dict[str, Any]] = tab.evaluate(
        f"axe.run(document, {options}).then(({{violations}}) => violations.map(({{id, help, nodes}}) =>"
        " ({id, help, nodes: nodes.slice(0, 3).map((node) => node.target.join(' ') + ' ' + node.html.slice(0, 160)"
        " + ' ' + (node.failureSummary || '').slice(0, 200))})))"
    )
    return [f"{each['id']}: {each['help']}: {each['nodes']}" for each in broken]
