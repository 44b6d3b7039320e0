"""One local cloud for all files of this folder. A test may not expect to be alone, nor change what other tests need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.conftest import Api, served


@pytest.fixture(scope="package")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The local cloud of this folder. It is stopped after the folder's last test."""
    with served(tmp_path_factory.mktemp("cloud")) as served_api:
        yield served_api
