"""Finalize script of a device that is ours: it runs the owner's own one first, then unpacks the first boot of a node.

It carries the owner's script, so that the device alone tells what it was before.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

ROOT = "/localdisk"
"""Where the installer has the new root while it runs the script."""
_HOST, _BEFORE = "# stockyard-host ", "# stockyard-before "
_ADDRESS = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}", re.ASCII)
_READ = re.compile(r"\A#!/bin/bash\n# stockyard-host (\S+) (\S+)\n# stockyard-before ([A-Za-z0-9+/=]+)\n")


def script(resource: str, device: str, mac: str, before: Any, payload: str) -> str:
    """The script of that record and device. ``before`` is the owner's, whatever type the field has; ``payload`` are
    shell commands that find the new root in ``$root``.

    Only the machine with that network address does what ``payload`` says: a device that is copied has the script too.
    """
    packed = base64.b64encode(json.dumps(before).encode()).decode()
    own = before if isinstance(before, str) else ""
    # It is a word of the shell below: what is no address is left out.
    mac = mac if _ADDRESS.fullmatch(mac) else ""
    lines = [
        "#!/bin/bash",
        f"{_HOST}{resource} {device}",
        f"{_BEFORE}{packed}",
        "set -euo pipefail",
        f'root="${{STOCKYARD_ROOT:-{ROOT}}}"',
    ]
    if own:
        text = base64.encodebytes(own.encode()).decode()
        lines += [
            'before="$(mktemp)"',
            f"base64 --decode > \"$before\" <<'END_OF_BEFORE'\n{text}END_OF_BEFORE",
            'chmod 0700 "$before"',
            '"$before"',
            'rm -f "$before"',
        ]
    if mac:
        lines.append(f'grep -qix "{mac}" "${{STOCKYARD_NET:-/sys/class/net}}"/*/address || exit 0')
    lines += ['[ -d "$root/etc" ] || { echo "there is no new root at $root" >&2; exit 1; }', payload]
    return "\n".join(lines) + "\n"


def owner_of(finalize: object) -> tuple[str, str] | None:
    """Record and device of a script of ours; None for any other."""
    match = _READ.match(finalize) if isinstance(finalize, str) else None
    return (match[1], match[2]) if match else None


def before_of(finalize: Any) -> Any:
    """The owner's own script behind one of ours; any other as it is."""
    match = _READ.match(finalize) if isinstance(finalize, str) else None
    if match is None:
        return finalize
    try:
        return json.loads(base64.b64decode(match[3], validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return ""


def is_own(finalize: object) -> bool:
    """Whether a finalize script is one of ours, or was made from one."""
    return isinstance(finalize, str) and _HOST in finalize
