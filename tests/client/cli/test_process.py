"""The command as a process of its own: streams, terminal, signals, completion."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.cells import cell_len

CLIENT = Path(__file__).parents[3] / "client"
COMMAND = [sys.executable, "-m", "stockyard_client"]
SECRET = "canary-token-0123456789"


class Api:
    """A tiny server: clusters, and one operation that ends at the second look unless it is told to hang."""

    def __init__(self, cluster, operation) -> None:
        self.looks = 0
        self.hang = False
        self.looked = threading.Event()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.partition("?")[0] == "/v1/operations/op_01":
                    api.looks += 1
                    api.looked.set()
                    time.sleep(0.5 if "wait=" in self.path else 0)  # the API answers once there is news
                    done = api.looks > 1 and not api.hang
                    self.reply(operation("succeeded", *["succeeded"] * 3) if done else operation("running", "running"))
                elif self.path.startswith("/v1/clusters?") or self.path == "/v1/clusters":
                    self.reply({"items": [cluster(status="ready", description="日本")], "next_page_token": None})
                else:
                    self.reply({"error_type": "NotFound", "detail": "There is no such thing."}, 404)

            def reply(self, document, status=200) -> None:
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def server(cluster_document, operation_document):
    api = Api(cluster_document, operation_document)
    thread = threading.Thread(target=api.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield api
    api.server.shutdown()
    api.server.server_close()
    thread.join()


@pytest.fixture
def environment(server, tmp_path):
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(CLIENT),
        "PYTHONUTF8": "1",
        "HOME": str(tmp_path),
        "TERM": "xterm-256color",
        "STOCKYARD_URL": server.url,
        "STOCKYARD_TOKEN": SECRET,
    }


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


_CONTROL = re.compile(r"\x1b\[[0-9;]*m")


def run_on_terminal(environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Exit code and everything that a terminal got to see."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], env=environment, stdin=terminal, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        output = b""
        try:
            while part := os.read(controller, 4096):
                output += part
        except OSError:  # Linux says EIO when the other end has closed
            pass
        finally:
            os.close(controller)
    return process.returncode, output.decode()


def test_data_on_stdout_and_no_control_sequence_in_a_pipe(environment):
    environment["FORCE_COLOR"] = "1"
    result = run(environment, "cluster", "list")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[1].split()[:2] == ["demo", "ready"]
    assert result.stderr == ""
    assert "\x1b" not in result.stdout


def test_a_character_that_the_encoding_has_not_is_escaped(environment):
    environment |= {"PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
    result = run(environment, "cluster", "list", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)[0]["description"] == "日本"


def test_an_argument_that_is_no_text_is_refused(environment):
    result = run(environment, "cluster", "get", "\udcff")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "Error: an argument is not UTF-8 text\n"


def test_talk_on_stderr_and_exit_code(environment):
    result = run(environment, "cluster", "get", "nothing")
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == "Error: There is no such thing. (NotFound, 404)\n"


def test_wait_in_a_pipe_is_plain_lines(environment):
    result = run(environment, "operation", "wait", "op_01", "-o", "name")
    assert (result.returncode, result.stdout) == (0, "op_01\n")
    assert "account        succeeded" in result.stderr
    assert "\x1b" not in result.stderr


def test_wait_on_a_terminal_is_live(environment):
    code, output = run_on_terminal(environment, "operation", "wait", "op_01")
    assert code == 0
    assert "\x1b[" in output
    assert "● account" in output
    assert "✓ control_plane" in output
    assert "100%" in output


@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_terminal_without_colour_gets_no_control_sequence(environment, plain):
    environment.update(plain)
    code, output = run_on_terminal(environment, "operation", "wait", "op_01")
    assert code == 0
    assert "\x1b" not in output
    assert "account        succeeded" in output


@pytest.mark.parametrize("plain", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_terminal_without_colour_is_as_wide_as_another(environment, plain):
    environment |= {**plain, "COLUMNS": "60"}
    code, output = run_on_terminal(environment, "cluster", "list")
    lines = [_CONTROL.sub("", line) for line in output.splitlines()]
    assert (code, lines[1].split()[:2]) == (0, ["demo", "ready"])
    assert max(map(cell_len, lines)) <= 60
    in_a_pipe = run(environment, "cluster", "list").stdout.splitlines()
    assert max(map(cell_len, in_a_pipe)) > 60


def test_stream_without_unicode_gets_ascii(environment):
    environment.update(PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    result = run(environment, "operation", "get", "op_01")
    assert result.returncode == 0, result.stderr
    assert "* account" in result.stdout


def test_time_out(environment, server):
    server.hang = True
    assert run(environment, "operation", "wait", "op_01", "--timeout", "0").returncode == 124


def test_interruption(environment, server):
    server.hang = True
    # A run in the background inherits that the signal is ignored, and would hand it on.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [*COMMAND, "operation", "wait", "op_01"], env=environment, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        assert server.looked.wait(30)
        process.send_signal(signal.SIGINT)
        _, talk = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in talk
    assert "the operation goes on. To wait again: stockyard operation wait op_01" in talk


def test_token_is_shown_nowhere_in_a_crash_or_help(environment, server):
    server.server.shutdown()
    server.server.server_close()
    for arguments in (("--help",), ("cluster", "create", "--help"), ("-v", "cluster", "create", "-f", "/dev/null")):
        result = run(environment, *arguments)
        assert SECRET not in result.stdout + result.stderr


def test_shell_completion_knows_commands_and_clusters(environment):
    def completed(words: str, word_index: int) -> list[str]:
        completion = {"_STOCKYARD_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(word_index)}
        return run({**environment, **completion}).stdout.split()

    assert completed("stockyard clu", 1) == ["cluster"]
    assert completed("stockyard cluster get d", 3) == ["demo"]
