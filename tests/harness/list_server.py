"""A stand-in for the API server, in a network namespace of its own. One file is served to everybody; what is written on
Nodes is kept in ``nodes`` beside it, a file each.

``python -m tests.harness.list_server FILE CERTIFICATE KEY PORT``.
"""

from __future__ import annotations

import http.server
import ssl
import sys
from pathlib import Path


def main(file: str, certificate: str, key: str, port: str) -> None:
    """Serve until the process is ended."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = Path(file).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_PATCH(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            folder = Path(file).parent / "nodes"
            folder.mkdir(exist_ok=True)
            path = folder / self.path.rpartition("/")[2]
            path.with_suffix(".new").write_bytes(body)
            path.with_suffix(".new").replace(path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("0.0.0.0", int(port)), Handler)  # noqa: S104 - a namespace's own
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
