"""Quick answers: the tags of a resource are looked up, and where a shape's member is in an object is found out once.

moto compares the tags of all resources with a pattern for each resource that it tells of, and asks six classes anew for
the names under which each member of each answer could be. The answers stay the same; a test compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.serialize import (
    DEFAULT_ALIAS_PROVIDERS,
    MISSING,
    AttributePickerContext,
    ResponseSerializer,
    XFormedAttributePicker,
    get_value,
)
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.tags import EC2_PREFIX_TO_RESOURCE, get_prefix

KEYS = "_stockyard_keys"
"""Where a shape keeps the names of its value, for each class of objects."""


@contextmanager
def quick_tags() -> Iterator[None]:
    """While it is open, the time to read a resource's tags does not depend on how many resources there are."""
    with patch.object(TaggedEC2Resource, "get_tags", _own_tags):
        yield


@contextmanager
def quick_answers() -> Iterator[None]:
    """While it is open, tags are quick and moto writes its answers in half the time."""
    quick = _names_kept(ResponseSerializer.get_value)
    with quick_tags(), patch.object(ResponseSerializer, "get_value", quick):
        yield


def _own_tags(resource: Any) -> list[dict[str, str]]:
    if not resource.id:
        return []
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), "")
    # a plain look into moto's defaultdict would leave an empty entry
    tags = resource.ec2_backend.tags.get(resource.id, {})
    return [
        {"resource_id": resource.id, "key": key, "value": value, "resource_type": kind}
        for key, value in tags.copy().items()
    ]


def _names_kept(original: Callable[..., Any]) -> Callable[..., Any]:
    def value_of(serializer: Any, owner: Any, key: str, shape: Any) -> Any:
        picker = serializer._value_picker
        if type(picker) is not XFormedAttributePicker or picker.alias_providers is not DEFAULT_ALIAS_PROVIDERS:
            return original(serializer, owner, key, shape)
        value = None
        for name in _names(picker, serializer, owner, key, shape):
            attribute = get_value(owner, name, MISSING)
            if attribute is not MISSING:
                value = attribute
                break
        if picker.response_transformers:
            path = ".".join((*serializer.path, key))
            for ending, transform in picker.response_transformers.items():
                if path.endswith(ending):
                    return transform(value)
        return value

    return value_of


def _names(picker: Any, serializer: Any, owner: Any, key: str, shape: Any) -> tuple[str, ...]:
    """Under which names the value may be: they depend on the shape and on the class of the object alone."""
    known_names: dict[tuple[str, type], tuple[str, ...]] = shape.__dict__.setdefault(KEYS, {})
    names = known_names.get((key, type(owner)))
    if names is None:
        model = serializer.operation_model
        context = AttributePickerContext(owner, key, shape, model, model.service_model)
        names = known_names[key, type(owner)] = tuple(dict.fromkeys(picker.get_possible_keys(context)))
    return names
