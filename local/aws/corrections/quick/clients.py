"""Quick boto3 clients: the parts that all clients of a service share are read and built once in a process.

Without this each session reads the services' models again (50 ms for EC2), inspects the signature of each handler,
builds each client's methods again and translates the same event names, and moto lists a service's actions at each call.
What was read once stays for the next local cloud of the process.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import botocore.hooks
import botocore.session
from botocore.client import ClientCreator
from botocore.hooks import EVENT_ALIASES, EventAliaser
from botocore.loaders import create_loader
from botocore.model import ServiceModel
from moto.core import responses
from moto.core.utils import method_names_from_class

_loader = cache(create_loader)
_actions = cache(method_names_from_class)
_methods: dict[int, tuple[ServiceModel, dict[str, Any]]] = {}
"""By the identity of a model, which is kept here so that no other gets it."""
_aliases: dict[str, str] = {}


@contextmanager
def quick_clients() -> Iterator[None]:
    """Inside this context clients are made in a fraction of the time, and work the same."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(botocore.session, "create_loader", partial(_loader)))
        stack.enter_context(patch.object(ClientCreator, "_load_service_model", _reading()))
        methods = _built_once(ClientCreator._create_methods)  # type: ignore[attr-defined]
        stack.enter_context(patch.object(ClientCreator, "_create_methods", methods))
        alias = _translated_once(EventAliaser._alias_event_name)  # type: ignore[attr-defined]
        stack.enter_context(patch.object(EventAliaser, "_alias_event_name", alias))
        stack.enter_context(patch.object(responses, "method_names_from_class", partial(_actions)))
        keywords = _read_off_the_code(botocore.hooks.accepts_kwargs)
        stack.enter_context(patch.object(botocore.hooks, "accepts_kwargs", keywords))
        yield


@cache
def _model(loader: Any, service: str, version: str | None) -> ServiceModel:
    return ServiceModel(loader.load_service_model(service, "service-2", api_version=version), service_name=service)


def _reading() -> Callable[..., ServiceModel]:
    def load(creator: Any, service: str, api_version: str | None = None) -> ServiceModel:
        return _model(creator._loader, service, api_version)

    return load


def _built_once(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def create_methods(creator: Any, model: ServiceModel) -> dict[str, Any]:
        if id(model) not in _methods:
            _methods[id(model)] = model, original(creator, model)
        return dict(_methods[id(model)][1])

    return create_methods


def _translated_once(original: Callable[[Any, str], str]) -> Callable[[Any, str], str]:
    def alias(aliaser: Any, name: str) -> str:
        if aliaser._event_aliases != EVENT_ALIASES:  # Each client has a copy.
            return original(aliaser, name)
        if name not in _aliases:
            _aliases[name] = original(aliaser, name)
        return _aliases[name]

    return alias


def _read_off_the_code(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def accepts_kwargs(handler: Any) -> Any:
        code = getattr(handler, "__code__", None)
        return original(handler) if code is None else code.co_flags & inspect.CO_VARKEYWORDS

    return accepts_kwargs
