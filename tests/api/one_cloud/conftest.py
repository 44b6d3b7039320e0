"""One local cloud for all files of this folder: none may count on being alone, nor change what others count on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.conftest import Api, served


@pytest.fixture(scope="package")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Its threads and what it changes in this process end with the folder."""
    with served(tmp_path_factory.mktemp("cloud")) as made:
        yield made
