"""Processes of the fork server are like ones that were started: their variables, their path, their end."""

from __future__ import annotations

import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.functions.fork_server import ROOT, Fork, ForkServer
from local.functions.warm_imports import SERVICES

BASE = """
import os
imported_by = os.getpid()
variable = os.environ.get("COLOUR")
"""
PROGRAM = """
import os, sys
import base
print(base.imported_by, os.getpid(), base.variable, sorted(os.environ), sys.argv[1], os.getcwd(), sep="|")
sys.exit(int(sys.argv[1]))
"""
WAITS = """
import threading
print("here", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkServer]:
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "waits.py").write_text(WAITS)
    fork_server = ForkServer(("no_such_module", "base"), (ROOT, tmp_path))
    yield fork_server
    fork_server.close()


def forked(server: ForkServer, folder: Path, module: str, argument: str = "0", **variables: str) -> Fork:
    with (folder / "output").open("ab", buffering=0) as output:
        return server.fork(module, argument, {"PYTHONPATH": str(folder), **variables}, folder, output)


def here(folder: Path) -> bool:
    return (folder / "output").read_text() == "here\n"


def test_a_process_has_its_own_variables_and_what_was_imported_before(server: ForkServer, tmp_path: Path) -> None:
    assert [forked(server, tmp_path, "program", str(code), COLOUR="blue").wait() for code in (0, 3)] == [0, 3]
    lines = [line.split("|") for line in (tmp_path / "output").read_text().splitlines()]
    (first, pid, *more), (second, other, *_) = lines
    assert first == second != pid != other
    assert more == ["None", "['COLOUR', 'PYTHONPATH']", "0", str(tmp_path)]


def test_modules_and_a_sitecustomize_are_looked_for_where_its_path_says(server: ForkServer, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('customized')")
    (own / "only_here.py").write_text("print('found')")
    assert forked(server, tmp_path, "only_here", PYTHONPATH=str(own)).wait() == 0
    assert (tmp_path / "output").read_text() == "customized\nfound\n"
    assert forked(server, tmp_path, "only_here").wait() == 1
    assert "No module named only_here" in (tmp_path / "output").read_text()


def test_a_process_is_killed(server: ForkServer, tmp_path: Path) -> None:
    process = forked(server, tmp_path, "waits")
    assert process.exit_code is None
    process.kill()
    assert (process.wait(), process.exit_code) == (-signal.SIGKILL, -signal.SIGKILL)
    process.kill()


def test_no_process_outlives_the_server(server: ForkServer, tmp_path: Path) -> None:
    process = forked(server, tmp_path, "waits")
    while not here(tmp_path):
        assert process.exit_code is None
    server.close()
    assert process.wait() == -signal.SIGKILL


def test_what_functions_want_is_imported(tmp_path: Path) -> None:
    """Files of botocore are read once: the loader of a new client finds them although the disk has them no more."""
    program = """
import sys
from unittest.mock import patch
import botocore.session
from botocore.loaders import JSONFileLoader
print("stockyard.wiring" in sys.modules, any(".on_machine." in name for name in sys.modules))
with patch.object(JSONFileLoader, "_load_file", side_effect=AssertionError):
    for service in sys.argv[1].split(","):
        botocore.session.Session().create_client(
            service, region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
print("made")
"""
    (tmp_path / "clients.py").write_text(program)
    server = ForkServer(("local.functions.warm_imports",), (ROOT, ROOT / "layers" / "common" / "python"))
    assert forked(server, tmp_path, "clients", ",".join(SERVICES)).wait() == 0
    assert (tmp_path / "output").read_text() == "True False\nmade\n"
    server.close()


def test_a_connection_that_is_reset_is_a_process_that_was_killed() -> None:
    """The server is gone, and has not read that it was to end the process."""
    listener = socket.create_server(("127.0.0.1", 0))
    own_end = socket.create_connection(listener.getsockname())
    other_end, _ = listener.accept()
    process = Fork(own_end)
    process.kill()
    other_end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    other_end.close()
    listener.close()
    assert process.wait() == -signal.SIGKILL
    assert process.wait() == -signal.SIGKILL
