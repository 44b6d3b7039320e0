"""Workers of a function's own (``ports.Background``) by Lambda's asynchronous invocation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockyard.adapters.aws_errors import translated


class LambdaBackground:
    """Invokes ``function``. Lambda itself repeats what fails, and sends it to the failure queue at last."""

    def __init__(self, client: Any, function: str) -> None:
        self._client = client
        self._function = function

    def invoke(self, event: Mapping[str, Any]) -> None:
        """See ``ports.Background.invoke``."""
        with translated():
            self._client.invoke(FunctionName=self._function, InvocationType="Event", Payload=json.dumps(event).encode())
