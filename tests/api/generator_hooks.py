"""Parts that the generator of requests leaves out. It loads this file by itself, in its own process."""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.hook
def filter_case(_: Any, case: Any) -> bool:
    """Leaves out what asks for another path than the one that is tested: a list or an object in a path is sent with its
    question marks as they are, so that the rest of the path is a query."""
    parts = (value for value in (case.path_parameters or {}).values() if not isinstance(value, str))
    return not any(mark in str(part) for part in parts for mark in "?#")
