"""Sources of documents: files, folders and standard input."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stockyard_client.cli.documents.bad_input import BadInput

STANDARD_INPUT = "standard input"
_ENDINGS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Source:
    """A text and what it is called in messages."""

    name: str
    text: str = field(repr=False)


def source_of(path: str) -> Source:
    """The text of the file ``path``, or of standard input for ``-``. Raises :class:`BadInput`, also for none."""
    source = _read(path)
    if not source.text.strip():
        raise BadInput(f"{source.name} is empty")
    return source


def _read(path: str) -> Source:
    _refuse_url(path)
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except IsADirectoryError:
        raise BadInput(f"{path} is a folder, and one file is needed here") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"cannot read {path}: {reason}") from None
    return Source(STANDARD_INPUT if path == "-" else path, text)


def sources_of(paths: Sequence[str], *, recursive: bool = False) -> list[Source]:
    """The texts of files, of the files of folders in order of name (``.yaml``, ``.yml``, ``.json``; with ``recursive``
    those of folders below as well), and of standard input. One alone is not empty. Raises :class:`BadInput`."""
    files = [file for path in paths for file in _files(path, recursive=recursive)]
    return [source_of(files[0])] if len(files) == 1 else [_read(file) for file in files]


def _files(path: str, *, recursive: bool) -> list[str]:
    _refuse_url(path)
    folder = Path(path)
    if path == "-" or not folder.is_dir():
        return [path]
    below = folder.rglob("*") if recursive else folder.glob("*")
    files = sorted(file for file in below if file.suffix in _ENDINGS and file.is_file())
    if not files:
        more = "" if recursive else "; -R looks into the folders below as well"
        raise BadInput(f"{path} holds no file that ends in {', '.join(_ENDINGS)}{more}")
    return [str(file) for file in files]


def _refuse_url(path: str) -> None:
    """Refuse a URL, because a document is sent with the caller's rights and so is not fetched unseen from a network."""
    if path.startswith(("http://", "https://")):
        text = "is a URL, and what it holds would be sent with your rights unseen: download it, look at it, then give"
        raise BadInput(f"{path} {text} the file, as in `curl -fsSLo manifest.yaml {path}`")
