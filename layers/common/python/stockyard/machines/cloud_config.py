"""User data for a machine's first boot: files that are written, and one unit that is started.

It is a cloud-config document, or a script where a cloud takes no document. Both are compressed, because clouds take
little: EC2 at most 16 KiB.

The unit runs a start script until it has succeeded once, so that a reboot or an outage in the middle is no end.
"""

from __future__ import annotations

import ast
import base64
import gzip
import io
import tarfile
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

LIMIT = 14 * 1024
"""Bytes of user data that we allow ourselves: EC2 counts its 16 KiB before they are encoded."""
FOLDER = "/usr/local/lib/stockyard"
START_PATH = f"{FOLDER}/start.sh"
MACHINE_PATH = f"{FOLDER}/stockyard_machine.py"
UNIT = "stockyard-start.service"
_PARTS = ("stockyard_machine.py", "stockyard_machine_member.py", "stockyard_machine_first.py")
"""The files of the program for proofs of identity: each machine has one file with the first ones of them."""
_OWN = "stockyard.machines.on_machine."
_FILES = Path(__file__).parent / "on_machine"

_UNIT = """[Unit]
Description={description}
Wants=network-online.target
After=network-online.target cloud-init.service
ConditionPathExists=!/var/lib/stockyard/reported

[Service]
Type=oneshot
ExecStart={start}
ExecStartPost=/usr/bin/install -D -m 0600 /dev/null /var/lib/stockyard/reported
Restart=on-failure
RestartSec=30

[Install]
WantedBy=multi-user.target
"""
_SYSCTL = "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n"


@dataclass(frozen=True, slots=True)
class File:
    """A file that cloud-init writes. Its text may hold what a machine proves itself by."""

    text: str = field(repr=False)
    mode: str = "0644"


NODE, MEMBER, FIRST = range(3)
"""A worker, a further member of a control plane, and the member that initialises it: each has what the one before it
has, and more."""


@cache
def machine_program(part: int) -> File:
    """The program for proofs of identity, which every machine has, with the parts that ``NODE``, ``MEMBER`` or
    ``FIRST`` needs."""
    joined, imported = ast.Module([], []), set[str]()
    for name in _PARTS[: part + 1]:
        for statement in _without_words(_source(name)).body:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                joined.body.append(statement)
            elif not _stands_above(statement, imported):
                imported.add(ast.unparse(statement))
                joined.body.append(statement)
    return File(ast.unparse(joined) + "\n", "0755")


def _stands_above(statement: ast.Import | ast.ImportFrom, imported: Set[str]) -> bool:
    """Whether what a part of a program imports is in the file already: it is of a part above, or imported there."""
    own = isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(_OWN)
    return own or ast.unparse(statement) in imported


@cache
def program(name: str) -> File:
    """One of the programs of this package, without what is only for its readers: user data has little room."""
    text = _source(name)
    return File(ast.unparse(_without_words(text)) + "\n" if name.endswith(".py") else _without_comments(text), "0755")


def _source(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _without_words(source: str) -> ast.Module:
    """A program without docstrings and without the types of its functions."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return tree


def _without_comments(script: str) -> str:
    commands = [line for line in script.splitlines() if line.startswith("#!") or not line.lstrip().startswith("#")]
    return "\n".join(commands) + "\n"


OVERLAY_UNIT = "stockyard-overlay.service"
_OVERLAY = """[Unit]
Description=Keep this machine in the overlay of its cluster
Wants=network-online.target
After=network-online.target
Before=kubelet.service
ConditionPathExists=/etc/stockyard/overlay.json

[Service]
ExecStart=/usr/bin/python3 /etc/stockyard/stockyard_overlay.py
KillMode=process
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
"""
"""A userspace interface outlives its program."""


def overlay_files() -> dict[str, File]:
    """Further files of a machine in a cluster with an overlay. The program itself comes with the answer to its proof,
    since user data has no room for it."""
    return {
        f"{FOLDER}/overlay.sh": program("overlay.sh"),
        f"/etc/systemd/system/{OVERLAY_UNIT}": File(_OVERLAY),
    }


def start_script(part: str) -> File:
    """The script for ``START_PATH``: what every machine begins with, then ``part``. It takes ``Sources.arguments``."""
    return File("\n".join(program(name).text for name in ("begin.sh", part)), "0755")


@dataclass(frozen=True, slots=True)
class FirstBoot:
    """Files by path, among them ``START_PATH``, a program that runs with ``arguments`` until it succeeds.

    ``description`` is the unit's. Rendered twice, the text is the same. ``ValueError`` for more than ``LIMIT``.
    """

    files: Mapping[str, File]
    description: str
    arguments: str

    def cloud_config(self) -> bytes:
        """As a compressed document of cloud-init, which decompresses by itself."""
        run = "".join(f"  - [{', '.join(command.split())}]\n" for command in _COMMANDS)
        entries = "".join(_entry(path, file) for path, file in self._written().items())
        text = f"#cloud-config\npackage_update: false\nwrite_files:\n{entries}runcmd:\n{run}"
        return _within_limit(gzip.compress(text.encode(), mtime=0))

    def script(self) -> str:
        """As a shell script that unpacks itself; root runs it."""
        return unpacking(self._written(), _COMMANDS)

    def into(self, root: str) -> str:
        """Shell commands that unpack the files below ``root``, a word of the shell, where the next boot starts them."""
        wants = f"{root}/etc/systemd/system/multi-user.target.wants"
        enabled = (f'mkdir -p "{wants}"', f'ln -sfn ../{UNIT} "{wants}/{UNIT}"')
        return unpacking(self._written(), enabled, f'"{root}"')

    def _written(self) -> dict[str, File]:
        start = f"{START_PATH} {self.arguments}".rstrip()
        return {
            **self.files,
            f"/etc/systemd/system/{UNIT}": File(_UNIT.format(description=self.description, start=start)),
            "/etc/modules-load.d/stockyard.conf": File("overlay\nbr_netfilter\n"),
            "/etc/sysctl.d/90-stockyard.conf": File(_SYSCTL),
        }


_COMMANDS = ("systemctl daemon-reload", f"systemctl enable {UNIT}", f"systemctl start --no-block {UNIT}")
_END = "END_OF_FILES"
_UNPACK = f"""#!/bin/bash
set -euo pipefail
umask 022
base64 --decode <<'{_END}' | tar --extract --gzip \\
    --preserve-permissions --no-same-owner --no-overwrite-dir --directory {{root}}
"""


def unpacking(files: Mapping[str, File], commands: Sequence[str], root: str = "/") -> str:
    """A shell script that writes the files below ``root``, a word of the shell, which it carries compressed, and runs
    the commands; root runs it."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as writer:
        for path, file in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            content = (file.text.removesuffix("\n") + "\n").encode()
            entry.size, entry.mode = len(content), int(file.mode, 8)
            writer.addfile(entry, io.BytesIO(content))
    packed = base64.encodebytes(_within_limit(gzip.compress(archive.getvalue(), mtime=0))).decode()
    return f"{_UNPACK.format(root=root)}{packed}{_END}\n" + "".join(f"{command}\n" for command in commands)


def _within_limit(compressed: bytes) -> bytes:
    if len(compressed) > LIMIT:
        raise ValueError(f"user data is {len(compressed)} bytes, more than {LIMIT}")
    return compressed


def _entry(path: str, file: File) -> str:
    body = "".join(f"      {line}\n" if line else "\n" for line in file.text.splitlines())
    return f"  - path: {path}\n    owner: root:root\n    permissions: '{file.mode}'\n    content: |\n{body}"
