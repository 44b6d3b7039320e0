"""The program of runs as one file: a zip application, the same bytes whoever starts it and wherever."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path

_ROOM = Path(__file__).with_name("stockyard_run")
_MOMENT = (1980, 1, 1, 0, 0, 0)
_START = """from stockyard_run.__main__ import main
import os, sys
sys.exit(main(dict(os.environ)))
"""


@cache
def program() -> bytes:
    """The zip application. ``python3 FILE`` starts it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _MOMENT), _START, zipfile.ZIP_DEFLATED)
        for path in sorted(_ROOM.glob("*.py")):
            entry = zipfile.ZipInfo(f"{_ROOM.name}/{path.name}", _MOMENT)
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
