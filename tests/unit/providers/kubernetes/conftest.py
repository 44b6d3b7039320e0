"""An authority of clusters, and objects that clients apply to them."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
import stamina

from local.authority import Authority

VALUE = base64.b64encode(b"a-very-secret-value").decode()
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "web"}, "data": {"x": "1"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "web"}, "data": {"k": VALUE}}


@pytest.fixture
def no_pauses() -> Iterator[None]:
    """Calls are tried three times, without a pause between them."""
    with stamina.set_testing(True, attempts=3):
        yield


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))
