"""What belongs to the installation as a whole."""

from __future__ import annotations

from contextlib import suppress

from stockyard import errors
from stockyard.adapters.dynamodb import keys
from stockyard.domain.records import Fact
from stockyard.ports import Create, Store


def installation(store: Store, randomness: bytes) -> str:
    """The installation's random id in the platform's ``store``; made of ``randomness`` when there is none yet.

    Of two that make it at once, the first wins and both get its id.
    """
    fact = store.get(Fact, keys.INSTALLATION)
    if fact is None:
        with suppress(errors.Conflict):
            store.commit(Create(Fact(keys.INSTALLATION, randomness.hex(), "")))
        fact = store.get(Fact, keys.INSTALLATION)
    if fact is None:
        raise errors.StoreError("The installation's id was removed while it was read")
    return fact.value
