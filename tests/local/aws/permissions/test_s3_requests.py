"""Each operation of S3 that the table has is known by the request that botocore makes of it."""

from __future__ import annotations

import io
from copy import deepcopy
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.loaders import Loader
from botocore.serialize import create_serializer

from local.aws.corrections.rest_services import service_model
from local.aws.permissions import s3_requests, table

PARAMETERS: dict[str, Any] = {
    "Bucket": "data-1",
    "Key": "a/b c",
    "Tagging": {"TagSet": [{"Key": "k", "Value": "v"}]},
    "Delete": {"Objects": [{"Key": "a/1"}, {"Key": "a/2", "VersionId": "v"}]},
    "Prefix": "a/",
    "Body": b"x",
    "VersioningConfiguration": {"Status": "Enabled"},
    "LifecycleConfiguration": {"Rules": []},
    "ServerSideEncryptionConfiguration": {"Rules": []},
    "PublicAccessBlockConfiguration": {},
}


def environ(operation: str) -> dict[str, Any]:
    """The request of an operation as the server gets it."""
    model = service_model("s3").operation_model(operation)
    members = model.input_shape.members if model.input_shape is not None else {}
    # tags of an object are a text, which nothing here looks at
    request_parameters = {
        name: value
        for name, value in PARAMETERS.items()
        if name in members and not (members[name].type_name == "string" and isinstance(value, dict))
    }
    request = create_serializer("rest-xml").serialize_to_request(request_parameters, model)
    path, _, query = request["url_path"].partition("?")
    body = request["body"] if isinstance(request["body"], bytes) else b""
    more = urlencode(request["query_string"])
    return {
        "REQUEST_METHOD": request["method"],
        "RAW_URI": path,
        "PATH_INFO": path,
        "QUERY_STRING": "&".join(part for part in (query, more) if part),
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }


def test_each_operation_is_known_by_its_request() -> None:
    for operation in table.TABLE["s3"]:
        request_environ = environ(operation)
        name, parameters = s3_requests.request(request_environ)
        assert name == operation
        members = service_model("s3").operation_model(operation).input_shape.members
        for field in ("Bucket", "Key", "Prefix", "Delete"):
            if field in members and not (operation == "ListBuckets" and field == "Prefix"):
                assert parameters[field] == PARAMETERS[field], operation
        if operation == "DeleteObjects":
            assert b"<Delete" in request_environ["wsgi.input"].read(), "who answers reads it too"
    assert s3_requests.request({"REQUEST_METHOD": "PATCH", "PATH_INFO": "/data-1"})[0] == ""


def test_clients_that_were_used_before_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore's clients of S3 take the bucket out of the paths of the model that they share."""
    shared = deepcopy(Loader().load_service_model("s3", "service-2"))
    http = shared["operations"]["ListObjectsV2"]["http"]
    before = "/{Bucket}?list-type=2"
    http |= {"authPath": "/{Bucket}/", "requestUri": "?list-type=2"}
    monkeypatch.setattr(Loader, "load_service_model", lambda *_: shared)
    service_model.cache_clear()
    assert service_model("s3").operation_model("ListObjectsV2").http["requestUri"] == before
    assert http["requestUri"] != before, "the clients keep theirs"
    service_model.cache_clear()
