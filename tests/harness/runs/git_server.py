"""Repositories that are served over smart HTTP on the loopback, as hosts of git do."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class GitServer:
    """Bare repositories in a folder. With ``credentials``, a user and a password with a colon between them, nobody else
    reads them."""

    root: Path
    credentials: str | None = None
    url: str = ""
    requests: list[str] = field(default_factory=list)

    def commit(self, name: str, files: Mapping[str, str], branch: str = "main", tag: str | None = None) -> str:
        """Commit these files as the whole content of a branch of a repository, which is made where there is none. The
        commit."""
        bare, work = self.root / f"{name}.git", self.root / "work" / name
        if not bare.exists():
            _git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
            _git("-C", str(bare), "config", "uploadpack.allowReachableSHA1InWant", "true")
            _git("clone", "--quiet", str(bare), str(work))
        _git("-C", str(work), "checkout", "--quiet", "-B", branch)
        for path in [each for each in work.rglob("*") if each.is_file() and ".git" not in each.parts]:
            path.unlink()
        for path_name, text in files.items():
            path = work / path_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        _git("-C", str(work), "add", "--all")
        _git("-C", str(work), *_IDENTITY, "commit", "--quiet", "--allow-empty", "-m", "change")
        _git("-C", str(work), "push", "--quiet", "--force", "origin", branch)
        if tag is not None:
            _git("-C", str(work), "tag", "--force", tag)
            _git("-C", str(work), "push", "--quiet", "--force", "origin", f"refs/tags/{tag}")
        return _git("-C", str(work), "rev-parse", "HEAD")


_IDENTITY = ("-c", "user.name=owner", "-c", "user.email=owner@example.test", "-c", "commit.gpgsign=false")


def _git(*arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


@contextmanager
def serving(server: GitServer) -> Iterator[GitServer]:
    """Serve the repositories while the block lasts."""
    backend = str(Path(_git("--exec-path")) / "git-http-backend")

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            server.requests.append(self.path)
            expected = f"Basic {base64.b64encode((server.credentials or '').encode()).decode()}"
            if server.credentials is not None and self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
            }
            answer = subprocess.run([backend], input=body, capture_output=True, env=environment, check=False).stdout
            head, _, content = answer.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
            self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
