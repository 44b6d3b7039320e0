"""A correction for presigned requests. moto finds the service of a request by its ``Authorization`` header. Presigned
requests have no such header, so moto sends them to S3. Machines attest by a presigned ``sts:GetCallerIdentity``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication


def authorization(query: str) -> str | None:
    """The ``Authorization`` header with the content of a presigned query, or None when the query is not presigned."""
    parameters = {name: values[0] for name, values in parse_qs(query).items()}
    if "X-Amz-Signature" not in parameters or "X-Amz-Credential" not in parameters:
        return None
    return (
        f"AWS4-HMAC-SHA256 Credential={parameters['X-Amz-Credential']}, "
        f"SignedHeaders={parameters.get('X-Amz-SignedHeaders', 'host')}, Signature={parameters['X-Amz-Signature']}"
    )


@contextmanager
def presigned_requests() -> Iterator[None]:
    """Inside this context moto's server passes presigned requests for STS to STS, as the identity that signed them."""
    original = DomainDispatcherApplication.__call__

    def call(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
        if "HTTP_AUTHORIZATION" not in environ:
            header = authorization(environ.get("QUERY_STRING", ""))
            if header is not None and "/sts/aws4_request" in header:
                environ["HTTP_AUTHORIZATION"] = header
        return original(self, environ, start_response)

    DomainDispatcherApplication.__call__ = call
    try:
        yield
    finally:
        DomainDispatcherApplication.__call__ = original
