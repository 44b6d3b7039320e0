"""Switch of the search for garbage: it is off while something makes very many objects that live until its end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Without a search for garbage, also as a decorator: to look at objects that are all in use, again and again, takes
    a third of the time in which they are made. What nobody uses any more is freed as ever, but for circles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
