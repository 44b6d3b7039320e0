"""A correction for presigned requests. moto finds the service of a request by its ``Authorization`` header. Presigned
requests have no such header, so moto sends them to S3. Machines attest by a presigned ``sts:GetCallerIdentity``, and
clusters know people by one. As at AWS its signature has to hold, and its session to last; moto looks at neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.sts.models import sts_backends

from local.aws import signatures

_ERROR = (
    '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>{}</Code>'
    "<Message>The request is not accepted.</Message></Error><RequestId>refused</RequestId></ErrorResponse>"
)


def authorization(query: str) -> str | None:
    """The ``Authorization`` header with the content of a presigned query, or None when the query is not presigned."""
    parameters = {name: values[0] for name, values in parse_qs(query).items()}
    if "X-Amz-Signature" not in parameters or "X-Amz-Credential" not in parameters:
        return None
    return (
        f"AWS4-HMAC-SHA256 Credential={parameters['X-Amz-Credential']}, "
        f"SignedHeaders={parameters.get('X-Amz-SignedHeaders', 'host')}, Signature={parameters['X-Amz-Signature']}"
    )


def refusal(environ: dict[str, Any]) -> str:
    """The code of the error by which STS refuses a presigned request; empty where it takes it. Keys that moto has not
    given out are taken as they are."""
    query = environ.get("QUERY_STRING", "")
    parameters = {name: values[0] for name, values in parse_qs(query).items()}
    secret, token, ends_at = _keys(parameters["X-Amz-Credential"].split("/")[0])
    if not secret:
        return ""
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    now = datetime.now(UTC)
    headers["content-length"] = environ.get("CONTENT_LENGTH") or ""
    is_s3 = "/s3/aws4_request" in parameters["X-Amz-Credential"]
    method, payload = (environ["REQUEST_METHOD"], signatures.UNSIGNED) if is_s3 else ("GET", None)
    request_parts = (headers.get("host", ""), environ.get("PATH_INFO", ""), query)
    if not signatures.holds(*request_parts, headers, secret, method, payload):
        return "SignatureDoesNotMatch"
    if not signatures.is_current(query, now):
        return "RequestExpired"
    if parameters.get("X-Amz-Security-Token", "") != token:
        return "InvalidClientTokenId"
    return "ExpiredToken" if ends_at is not None and ends_at <= now else ""


def _keys(access_key: str) -> tuple[str, str, datetime | None]:
    """The secret key, the session's token and its end; empty for a key that is not known."""
    for account in list(sts_backends.values()):
        if (session := account["aws"].get_assumed_role_from_access_key(access_key)) is not None:
            return session.secret_access_key, session.session_token, session.expiration.replace(tzinfo=UTC)
    for account in list(iam_backends.values()):
        if (key := account["aws"].access_keys.get(access_key)) is not None:
            return str(key.secret_access_key), "", None
    return "", "", None


@contextmanager
def presigned_requests() -> Iterator[None]:
    """Let moto's server take presigned requests inside this context, for the signed service and as the identity of the
    signature. S3's are of any method, and with a body that is not signed."""
    original = DomainDispatcherApplication.__call__

    def call(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
        if "HTTP_AUTHORIZATION" not in environ:
            header = authorization(environ.get("QUERY_STRING", ""))
            if header is not None:
                if code := refusal(environ):
                    start_response("403 Forbidden", [("Content-Type", "text/xml")])
                    return [_ERROR.format(code).encode()]
                environ["HTTP_AUTHORIZATION"] = header
        return original(self, environ, start_response)

    DomainDispatcherApplication.__call__ = call
    try:
        yield
    finally:
        DomainDispatcherApplication.__call__ = original
