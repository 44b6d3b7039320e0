"""What the local machines read from user data and serve as instance metadata."""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from local.corrections.roles import AccessDenied
from local.machines import Metadata, cloud_init_files

DOCUMENT = "#cloud-config\nwrite_files:\n  - path: /etc/a\n    content: |\n      line\n"


def test_files_are_read_from_text_and_base_64() -> None:
    assert cloud_init_files(DOCUMENT) == {"/etc/a": "line\n"}
    assert cloud_init_files(base64.b64encode(DOCUMENT.encode())) == {"/etc/a": "line\n"}
    assert cloud_init_files("#cloud-config\nruncmd: []\n") == {}


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    found = Metadata()
    yield found
    found.close()


def get(url: str, method: str = "GET", token: str | None = None) -> tuple[int, str]:
    headers = {"X-aws-ec2-metadata-token": token} if token else {}
    try:
        request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310 (loopback)
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def test_metadata_needs_a_token_and_gives_the_roles_keys(metadata: Metadata) -> None:
    metadata.add("i-1", "us-east-1", lambda: ("node-role", {"AccessKeyId": "ASIA"}))
    root = f"{metadata.url}/i-1/latest"
    assert get(f"{root}/meta-data/placement/region")[0] == 401
    _, token = get(f"{root}/api/token", "PUT")
    assert get(f"{root}/meta-data/placement/region", token=token) == (200, "us-east-1")
    assert get(f"{root}/meta-data/iam/security-credentials/", token=token) == (200, "node-role")
    assert '"AccessKeyId": "ASIA"' in get(f"{root}/meta-data/iam/security-credentials/node-role", token=token)[1]
    assert get(f"{root}/meta-data/iam/security-credentials/other", token=token)[0] == 404
    assert get(f"{metadata.url}/i-2/latest/meta-data/placement/region", token=token)[0] == 404


def test_an_instance_without_a_role_has_no_keys(metadata: Metadata) -> None:
    def refuse() -> tuple[str, dict[str, str]]:
        raise AccessDenied("i-1", "none")

    metadata.add("i-1", "us-east-1", refuse)
    _, token = get(f"{metadata.url}/i-1/latest/api/token", "PUT")
    assert get(f"{metadata.url}/i-1/latest/meta-data/iam/security-credentials/", token=token)[0] == 404
