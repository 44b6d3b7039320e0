"""Keys of packages are fetched and read by Python alone: images without curl and gpg are machines too."""

from __future__ import annotations

import base64
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stockyard.machines import on_machine

FINGERPRINT = "1F1F078E79B80500DFE94DC48E556ECFBBF4FD1D"
KEY = """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawzGEhYJKwYBBAHaRw8BAQdAE3oxVrRinjOiFR+lB6HRAljJwc5ksTbOfGmj
R9D3QIe0FXBhY2thZ2VzQGV4YW1wbGUudGVzdIiQBBMWCAA4FiEEHx8Hjnm4BQDf
6U3EjlVuz7v0/R0FAmsMxhICGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ
jlVuz7v0/R3x9QEApbTB6ugC/MeTUELuyEpHS1M8mMDXU3YOlS6i6DW0lKIBALrq
lk3A4acQv1fuSvnGVJe5//+Ps4rc/fhP5gs64h4N
=crJM
-----END PGP PUBLIC KEY BLOCK-----
"""
"""A key that gpg has made, and its fingerprint as gpg prints it."""
SCRIPT = Path(on_machine.__file__).with_name("begin.sh")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key.asc").write_text(KEY)
    return tmp_path


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def call(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a function of the script."""
    program = 'source <(sed -n "/^${2}() {/,/^}/p" "$1"); shift; "$@"'
    return subprocess.run(
        ["bash", "-c", program, "bash", str(SCRIPT), *command], capture_output=True, text=True, timeout=30, check=False
    )


def test_a_key_is_fetched_and_one_that_is_not_there_is_an_error(folder: Path, url: str) -> None:
    assert call("fetch", f"{url}/key.asc", str(folder / "fetched")).returncode == 0
    assert (folder / "fetched").read_text() == KEY
    assert call("fetch", f"{url}/other.asc", str(folder / "other")).returncode != 0
    assert not (folder / "other").exists()


def test_each_key_of_a_file_has_its_fingerprint_and_apt_reads_what_was_read(folder: Path) -> None:
    done = call("unpack_keys", str(folder / "key.asc"), str(folder / "key.gpg"))
    assert done.stdout.split() == [FINGERPRINT]
    body = "".join(KEY.split("\n\n")[1].split("\n=", maxsplit=1)[0].splitlines())
    assert (folder / "key.gpg").read_bytes() == base64.b64decode(body)
    (folder / "two.asc").write_text(KEY + KEY.replace("\n", "\r\n"))
    assert call("unpack_keys", str(folder / "two.asc"), str(folder / "two.gpg")).stdout.split() == [FINGERPRINT] * 2


def test_a_key_in_the_new_format_of_packets_has_the_same_fingerprint(folder: Path) -> None:
    old = (folder / "key.asc").read_text().split("\n\n")[1].split("\n=")[0]
    data = base64.b64decode(old)
    assert data[0] == 0x98, "tag 6 with one byte of length"
    for head in (bytes([0xC6, data[1]]), bytes([0x99, 0, data[1]])):
        text = base64.b64encode(head + data[2:]).decode()
        (folder / "new.asc").write_text(f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{text}\n-----END\n")
        assert call("unpack_keys", str(folder / "new.asc"), str(folder / "new.gpg")).stdout.split() == [FINGERPRINT]


def test_what_is_no_key_or_cut_off_is_written_nowhere(folder: Path) -> None:
    start = KEY.split("\n\n")[1][:24]
    for text in ("", "no key", f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{start}\n-----END\n"):
        (folder / "bad.asc").write_text(text)
        assert FINGERPRINT not in call("unpack_keys", str(folder / "bad.asc"), str(folder / "bad.gpg")).stdout
