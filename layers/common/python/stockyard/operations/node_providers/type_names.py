"""Names of node types in requirements: a name without its provider stands for a type that one provider alone has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.requirements import INSTANCE_TYPE, NODE_TYPE, normal_key
from stockyard.errors import FieldProblem, InvalidInput
from stockyard.operations.node_providers.catalog import Catalog

_IN_DETAIL = 5
"""Types that a message names."""


def check_type_names(
    catalog: Catalog, provider: str, requirements: Sequence[Mapping[str, Any]], earlier: Iterable[Any] = ()
) -> None:
    """``InvalidInput`` for names in requirements that several node types have: they would stand for none of them.

    ``provider``: only its types count; empty for those of all. ``earlier`` are requirements that stand already: they
    are left alone, as a second provider may have brought the name since.
    """
    faults = [
        FieldProblem(field, f"{name} may be any of {names}; give the whole name")
        for field, name, names in _ambiguous(catalog, provider, requirements, list(earlier))
    ]
    if faults:
        raise InvalidInput.of(faults)


def _ambiguous(
    catalog: Catalog, provider: str, requirements: Sequence[Mapping[str, Any]], earlier: Sequence[Any]
) -> Iterator[tuple[str, str, str]]:
    """Place, value, and the names of the types that it may stand for."""
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    labels: set[str] = set()
    for index, entry in enumerate(requirements):
        key = normal_key(str(entry.get("key") or entry.get("property") or ""))
        if key not in (NODE_TYPE, INSTANCE_TYPE) or entry in earlier:
            continue
        for node_type in catalog.node_types.values() if not by_name else ():
            if provider in ("", node_type.provider):
                by_name[node_type.bare].append(node_type.name)
                labels.update(node_type.properties.get(INSTANCE_TYPE, ()))
        values = entry.get("values") or [entry.get("value")]
        for number, value in enumerate(values):
            names = by_name.get(str(value), ())
            if len(names) > 1 and value not in catalog.node_types and (key == NODE_TYPE or value not in labels):
                more = f" and {len(names) - _IN_DETAIL} more" if len(names) > _IN_DETAIL else ""
                field = pointer("requirements", index, *(("values", number) if entry.get("values") else ("value",)))
                yield field, str(value), ", ".join(sorted(names)[:_IN_DETAIL]) + more
