"""Meaning of an answer of an API server for us; no error repeats a secret."""

from __future__ import annotations

import json
import ssl
from typing import Any

import httpx
import pytest

from stockyard.errors import (
    CredentialsRevoked,
    PermissionDenied,
    VendorConflict,
    VendorError,
    VendorNotFound,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.providers.kubernetes.errors import EXPIRED, Subject, refused, unanswered

MAP, SECRET = Subject("apply", "ConfigMap", "a", "web"), Subject("apply", "Secret", "a", "web")
VALUE = "c3VwZXItc2VjcmV0LXZhbHVl"


def status(code: int, reason: str = "", message: str = "", causes: Any = ()) -> bytes:
    details = {"causes": causes} if causes else {}
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("code", "reason", "leaf", "retryable"),
    [
        (400, "BadRequest", VendorRefused, False),
        (401, "Unauthorized", CredentialsRevoked, False),
        (403, "Forbidden", PermissionDenied, False),
        (404, "NotFound", VendorNotFound, False),
        (405, "MethodNotAllowed", VendorRefused, False),
        (408, "", VendorTimeout, True),
        (409, "Conflict", VendorConflict, True),
        (409, "AlreadyExists", VendorConflict, True),
        (410, "Gone", VendorRefused, False),
        (422, "Invalid", VendorRefused, False),
        (429, "TooManyRequests", VendorThrottled, True),
        (500, "InternalError", VendorUnavailable, True),
        (502, "", VendorUnavailable, True),
        (503, "ServiceUnavailable", VendorUnavailable, True),
        (504, "Timeout", VendorTimeout, True),
        (302, "", VendorRefused, False),
    ],
)
def test_each_status_is_one_of_our_errors(code: int, reason: str, leaf: type[VendorError], retryable: bool):
    error = refused(MAP, code, status(code, reason))
    assert type(error) is leaf
    assert error.retryable is retryable
    assert error.code == (EXPIRED if code == 410 else reason or str(code))
    assert error.detail.startswith(f"kubernetes apply ConfigMap web/a: {code}")
    assert error.hint


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"[]", b"null", b'{"reason": 7, "details": "x"}'])
def test_an_answer_that_is_no_status_is_judged_by_its_number(body: bytes):
    error = refused(MAP, 503, body)
    assert (type(error), error.code) == (VendorUnavailable, "503")
    assert error.detail == "kubernetes apply ConfigMap web/a: 503"


def test_what_goes_with_its_namespace_is_tried_again():
    causes = [{"reason": "NamespaceTerminating", "message": "namespace web is being terminated", "field": "x"}]
    assert type(refused(MAP, 403, status(403, "Forbidden", "forbidden", causes))) is VendorConflict


_TYPED = "failed to create typed patch object"
_MACHINE = f"{_TYPED} (web/a.b; kubevirt.io/v1, Kind=VirtualMachine): "


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (f"{_TYPED} (web/a; /v1, Kind=ConfigMap): .data1: field not declared in schema",
         ".data1 (field not declared in schema)"),
        (f"{_TYPED} (web/a; /v1, Kind=ConfigMap): .data.a: expected string, got &value.valueUnstructured{{Value:1}}",
         ".data.a (expected string)"),
        (f"{_MACHINE}.spec.template.spec.domain.cpus: field not declared in schema",
         ".spec.template.spec.domain.cpus (field not declared in schema)"),
        (f"{_MACHINE}errors:\n  .spec.a: field not declared in schema\n"
         f'  .spec.disks[name="{VALUE}"].b: expected numeric (int or float), got {VALUE}\n'
         f'  .spec.disks: duplicate entries for key [name="{VALUE}"]',
         ".spec.a (field not declared in schema), .spec.disks[].b (expected numeric), .spec.disks (duplicate entries)"),
        (f"{_MACHINE}.metadata.labels.app.kubernetes.io/name[3]: expected string, got {VALUE}",
         ".metadata.labels.app.kubernetes.io/name[3] (expected string)"),
        (f"{_MACHINE}{VALUE}", ""),
    ],
)  # fmt: skip
def test_a_field_that_does_not_fit_its_kind_is_named_without_its_value(text: str, faults: str):
    error = refused(MAP, 500, status(500, "", text))
    assert error.detail == f"kubernetes apply ConfigMap web/a: 500{': ' if faults else ''}{faults}"
    assert refused(SECRET, 500, status(500, "", text)).detail == "kubernetes apply Secret web/a: 500"


@pytest.mark.parametrize(
    "text",
    [
        f"failed to create typed patch object (web/a): .data.x: expected string, got {VALUE}",
        f"failed to convert new object (web/a; /v1, Kind=ConfigMap) to proper version: error decoding {VALUE}",
    ],
)
def test_an_object_that_does_not_fit_its_kind_is_not_tried_again(text: str):
    error = refused(MAP, 500, status(500, "", text))
    assert type(error) is VendorRefused
    assert VALUE not in error.detail + error.hint


def test_a_refused_field_is_named_without_its_value():
    causes = [
        {
            "reason": "FieldValueInvalid",
            "message": f'Invalid value: "{VALUE}"',
            "field": "spec.ports[0]",
        },
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.selector"},
        {"reason": "odd reason", "message": "x", "field": f"spec with {VALUE}"},
    ]
    error = refused(MAP, 422, status(422, "Invalid", f'ConfigMap "a" is invalid: {VALUE}', causes))
    assert error.detail == (
        "kubernetes apply ConfigMap web/a: 422 Invalid: spec.ports[0] (FieldValueInvalid), "
        "spec.selector (FieldValueRequired)"
    )


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 422, 429, 500, 503])
def test_no_error_of_a_secret_repeats_what_the_server_says(code: int):
    causes = [{"reason": "FieldValueInvalid", "message": VALUE, "field": f"data[{VALUE}]"}]
    error = refused(SECRET, code, status(code, "Invalid", f"Secret is invalid: data: {VALUE}", causes))
    assert VALUE not in " ".join((str(error), error.detail, error.code, error.hint, repr(error)))


@pytest.mark.parametrize("code", [400, 403, 409, 429])
def test_the_words_of_a_webhook_are_not_repeated(code: int):
    error = refused(MAP, code, status(code, "Forbidden", f'admission webhook "x" denied the request: {VALUE}'))
    assert VALUE not in error.detail


def test_a_reason_that_is_no_word_is_not_repeated():
    error = refused(SECRET, 422, status(422, f"{VALUE} {VALUE}"))
    assert (error.code, VALUE in error.detail) == ("422", False)


def test_an_object_that_is_not_there_is_named_in_the_words_of_the_server():
    detail = refused(Subject("get", "Node", "n"), 404, status(404, "NotFound", 'nodes "n" not found')).detail
    assert detail == 'kubernetes get Node n: 404 NotFound: nodes "n" not found'


@pytest.mark.parametrize(("header", "seconds"), [("2", 2), ("9999", 10), ("", None), ("soon", None), ("-1", None)])
def test_a_server_says_how_long_to_wait(header: str, seconds: int | None):
    assert refused(MAP, 429, status(429), header).retry_after == seconds


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "leaf", "code"),
    [
        (httpx.ConnectTimeout("x"), VendorTimeout, "ConnectTimeout"),
        (httpx.ReadTimeout("x"), VendorTimeout, "ReadTimeout"),
        (httpx.ConnectError("x"), VendorUnavailable, "ConnectError"),
        (httpx.RemoteProtocolError("x"), VendorUnavailable, "RemoteProtocolError"),
        (_caused(httpx.ConnectError("x"), ssl.SSLError(1, "eof")), VendorUnavailable, "TLS"),
        (
            _caused(httpx.ConnectError("x"), ssl.SSLCertVerificationError(1, "self-signed")),
            VendorRefused,
            "CertificateVerification",
        ),
    ],
)
def test_each_fault_of_the_connection_is_one_of_our_errors(error: Exception, leaf: type[VendorError], code: str):
    translated = unanswered(MAP, error)
    assert (type(translated), translated.code) == (leaf, code)
    assert translated.detail.startswith("kubernetes apply ConfigMap web/a: ")
