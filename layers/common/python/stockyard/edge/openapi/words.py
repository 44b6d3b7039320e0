"""Texts that the OpenAPI document has once for all routes: rules, tags, parameters, headers, refusals with examples.

Never imported while serving.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard import errors
from stockyard.edge import problems

GUIDE = """Creates Kubernetes clusters and hands them nodes.

**Tokens.** Each request carries a bearer token of the realm, but for the few routes that say otherwise. The token
names one organization, which is the tenant: what belongs to another tenant does not exist for it.

**Bodies.** JSON in UTF-8, at most 256 KiB unless a route says more. Unknown fields and unknown query parameters are
refused by name. Times are RFC 3339 in UTC.

**Lists.** `items` and `next_page_token`, which is null on the last page and else the `page_token` of the next one, for
an hour. `page_size` is 50 unless it is given. A page of a filtered list may have fewer items, or none, and go on.

**Changes.** Each resource has a `version`, which is its `ETag`. PUT and PATCH send it back as `If-Match`: without one
the answer is 428, with a stale one 412. PATCH is a JSON merge patch (RFC 7396).

**News.** One resource answers 304 while its `ETag` is in `If-None-Match`. Where a route has `wait`, the answer comes
as soon as there is news, at most 20 seconds later: of one resource with `If-None-Match`, of a list in order of time
with `after`, which takes the `cursor` of the last answer, so that nothing is missed or told twice.

**Long work.** The answer is 202, and `Location` names the operation to follow. To delete again names the same one.

**Repetition.** A POST with an `Idempotency-Key` may be sent again: for 24 hours the same key gets the same answer, with
the header field `Idempotent-Replayed`. Another body with the key is 422, and while the first runs the answer is 409.

**Dry runs.** With `?dry_run=true` nothing is written, and the answer is a plan.

**Refusals** are problem documents (RFC 9457) of type `application/problem+json`. Switch on `error_type`; `errors` has a
JSON pointer for each fault of the body. A path that there is not is 404; a method that a path has not is 405, whose
`Allow` names those that it has. HEAD and OPTIONS are among what no path has.

**The gateway's own answers.** What the API gateway refuses before a function is asked comes as `application/json`
with nothing but a `message`, because an HTTP API cannot change its own answers: 401 for a token that is missing,
malformed, expired or not of this realm, with the reason in `WWW-Authenticate`; 413 for bodies of more than 10 MB; 429
above its rate, without `Retry-After`: wait a second, then twice as long each time; 500 and 503 where a function failed
or was too slow. The limit of a tenant is Stockyard's own: its 429 is a problem document and has `Retry-After`."""

TAGS: Mapping[str, str] = {
    "allowed-node-types": "Which node types a tenant may use.",
    "apply": "Manifests: documents that say what there is to be.",
    "audit": "Who did what.",
    "cloud-accounts": "The credentials of a cloud, in which clusters are made.",
    "cluster-profiles": "Packs that clusters are made with, in versions.",
    "clusters": "Kubernetes clusters that Stockyard makes, and what belongs to one of them.",
    "contract": "This document, and whether the API is there. No token is needed.",
    "costs": "What is paid now, and has been paid this month.",
    "disruption": "The switch that pauses the replacement of nodes in all clusters.",
    "event-accounts": "Accounts of the event bus whose events are a tenant's requests.",
    "events": "What happened, in order of time.",
    "machines": "What machines and the agents of clusters call; people have no use for it.",
    "metrics": "Numbers for Prometheus, in the text of OpenMetrics.",
    "node-claims": "Nodes that are wanted, promised or there.",
    "node-environments": "What a node provider set up once for a cluster.",
    "node-providers": "Where nodes can come from.",
    "node-types": "Kinds of nodes on offer, with their prices.",
    "operations": "Long changes of a resource: phases, progress, error.",
    "os-images": "Images that machines of one's own are written from.",
    "placements": "Which nodes pods would need, and at what price.",
    "pools": "Parts of a cluster whose nodes are alike.",
    "prices": "The price list of a region.",
    "quotas": "How much a tenant may have, and has.",
    "set-members": "What was applied together, as a set of manifests.",
    "sites": "Places of the tenant's own that only a connector there reaches.",
    "runs": "What the programs of runs and OpenTofu call; people have no use for it.",
    "simulations": "What a policy of disruption would have cost.",
}
PATH_PARAMETERS: Mapping[str, tuple[str, str]] = {
    "/v1/cloud-accounts/{id}": ("CloudAccountId", "The number of the cloud account."),
    "/v1/cluster-profiles/{id}": ("ClusterProfileId", "The id or name of the cluster profile."),
    "/v1/clusters/{id}": ("ClusterId", "The id or name of the cluster."),
    "/v1/clusters/{id}/pools/{name}": ("PoolName", "The name of the pool."),
    "/v1/node-claims/{id}": ("NodeClaimId", "The id or name of the node claim."),
    "/v1/node-environments/{id}": ("NodeEnvironmentId", "The id of the node environment."),
    "/v1/node-providers/{id}": ("NodeProviderId", "The id or name of the node provider."),
    "/v1/node-types/{id}": ("NodeTypeId", "The id of the node type, or its canonical name, `provider.type`."),
    "/v1/operations/{id}": ("OperationId", "The id of the operation."),
    "/v1/os-images/{id}": ("OSImageId", "The id or name of the OS image."),
    "/v1/quotas/{name}": ("QuotaName", "The name of the quota."),
    "/v1/runs/{id}": ("RunId", "The id of the run."),
    "/v1/sites/{id}": ("SiteId", "The id or name of the site."),
}
"""The path up to a parameter -> the name of its component, and what it means."""

DONE: Mapping[int, str] = {
    200: "Done.",
    201: "Made.",
    202: "Accepted; the operation does the rest.",
    423: "Another run holds the lock.",
}
GATEWAY_ALSO: Mapping[int, str] = {
    401: "Unauthorized",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
"""Statuses that the gateway also answers itself, with its own words."""
_OWN = "The gateway's own answer has only a `message`."
REFUSALS: Mapping[int, tuple[str, str]] = {
    400: ("MalformedBody", "The body is not JSON, or has none where one is needed."),
    401: ("Unauthorized", f"The token is missing, malformed, expired or not of this realm. {_OWN}"),
    403: ("Forbidden", "The role, the tenant or a quota does not allow it."),
    404: ("NotFound", "There is no such resource in this tenant."),
    409: ("Conflict", "Not possible in this state, or the first request with the key still runs."),
    412: ("PreconditionFailed", "`If-Match` is stale: somebody has changed the resource since."),
    413: ("BodyTooLarge", f"The body is too large. {_OWN}"),
    415: ("UnsupportedMediaType", "The body is not JSON by its type."),
    422: ("InvalidInput", "The input is not valid; `errors` says where."),
    428: ("PreconditionRequired", "`If-Match` is missing."),
    429: ("Throttled", f"Too many requests. {_OWN} It has no `Retry-After`, which that of a tenant's limit has."),
    500: ("Internal", f"An error of ours; the request id finds it in the logs. {_OWN}"),
    502: ("UnexpectedBehavior", "A service we depend on failed. Try again later."),
    503: ("Unavailable", f"Not available just now. {_OWN}"),
}
"""Status -> the name of the shared response, and what it says."""

_INSTANCE = "/v1/clusters/demo"
_FAULT = errors.FieldProblem("/settings/key_pair", "this field is required")
_EXAMPLES: Mapping[int, Mapping[str, errors.StockyardError]] = {
    400: {"malformed": errors.MalformedBody("The body is not JSON: line 1, column 2: a name in quotes is expected.")},
    401: {"unauthorized": errors.Unauthorized("The bearer token cannot be read.")},
    403: {
        "role": errors.Forbidden("This needs the role stockyard-operator or stockyard-admin."),
        "quota": errors.QuotaExceeded("The quota clusters allows 10, and 10 are used."),
    },
    404: {"missing": errors.NotFound("There is no cluster demo.")},
    409: {
        "state": errors.IllegalTransition("The cluster is deleting."),
        "name": errors.ClusterNameInUse("There is a cluster called demo."),
        "use": errors.InUse("The cloud account is used by the cluster demo."),
        "running": errors.RequestInProgress(retry_after=1),
    },
    412: {"stale": errors.PreconditionFailed("The cluster is at version 4, not 3.")},
    413: {"large": errors.BodyTooLarge("The body may have at most 256 KiB.")},
    415: {"type": errors.UnsupportedMediaType("Send the body as application/json in UTF-8.")},
    422: {
        "fields": errors.InvalidInput("/settings/key_pair: this field is required", errors=[_FAULT]),
        "key": errors.IdempotencyConflict(),
    },
    428: {"unguarded": errors.PreconditionRequired("Send the ETag you last read as If-Match.")},
    429: {"tenant": errors.Throttled("This tenant sends more requests than it may.", retry_after=1)},
    500: {"internal": errors.Internal("Something went wrong on our side. The request id finds it in the logs.")},
    502: {"service": errors.UnexpectedBehavior("Keycloak could not be asked (VendorUnavailable).")},
    503: {"table": errors.StoreUnavailable()},
}
"""Refusals as they may look, by status and by what is wrong."""

HEADERS: Mapping[str, Any] = {
    name: {"description": description, "required": False, "schema": {"type": kind}, "example": example}
    for name, description, kind, example in (
        ("ETag", "The version of the resource, for `If-Match`.", "string", '"3"'),
        ("Location", "The operation that does the work, or what was made.", "string", "/v1/operations/op_01"),
        ("RetryAfter", "Seconds to wait, where trying again may help.", "integer", 1),
        (
            "IdempotentReplayed",
            "`true` when this is the answer that the first request with the key got.",
            "string",
            "true",
        ),
        ("WWWAuthenticate", "How to authenticate, and of the gateway why the token was refused.", "string", "Bearer"),
    )
}
PROBLEM: Mapping[str, Any] = {
    "type": "object",
    "description": "A problem document (RFC 9457). Switch on `error_type`.",
    "required": ["type", "title", "status", "detail", "instance", "error_type", "retryable", "request_id", "errors"],
    "additionalProperties": False,
    "properties": {
        "type": {"type": "string", "description": "The type of the error as a URN."},
        "title": {"type": "string", "description": "What all errors of the type have alike, as a sentence."},
        "status": {"type": "integer", "description": "The status of the answer."},
        "detail": {"type": "string", "description": "What is wrong this time, as a sentence."},
        "instance": {"type": "string", "description": "The path of the request."},
        "error_type": {"type": "string", "description": "The type of the error in one word, which never changes."},
        "retryable": {"type": "boolean", "description": "Whether the same request may be granted later."},
        "request_id": {"type": "string", "description": "The id of the request, by which the logs have it."},
        "errors": {
            "type": "array",
            "description": "Each fault of the body; empty where the refusal is for something else.",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "additionalProperties": False,
                "properties": {
                    "pointer": {"type": "string", "description": "The JSON pointer of the place; empty for the body."},
                    "detail": {"type": "string", "description": "What is wrong there."},
                    "index": {"type": "integer", "description": "Of several manifests the number of this one, from 0."},
                    "kind": {"type": "string", "description": "The kind of that manifest."},
                    "name": {"type": "string", "description": "The name of that manifest."},
                },
            },
        },
    },
}
GATEWAY_MESSAGE: Mapping[str, Any] = {
    "type": "object",
    "description": "What the gateway answers itself.",
    "required": ["message"],
    "properties": {"message": {"type": "string", "description": "The gateway's own words for the status."}},
}


def refusal(status: int) -> dict[str, Any]:
    """The shared response of a status, with its examples."""
    samples = {
        name: {"value": problems.document(error, instance=_INSTANCE, request_id="3f8a61c2d4e5b790")}
        for name, error in _EXAMPLES[status].items()
    }
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": samples}
    content: dict[str, Any] = {problems.CONTENT_TYPE: problem}
    if status in GATEWAY_ALSO:
        schema = {"$ref": "#/components/schemas/GatewayMessage"}
        content["application/json"] = {"schema": schema, "example": {"message": GATEWAY_ALSO[status]}}
    document: dict[str, Any] = {"description": REFUSALS[status][1], "content": content}
    if status in (409, 429, 503):
        document["headers"] = {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}
    if status == 401:
        document["headers"] = {"WWW-Authenticate": {"$ref": "#/components/headers/WWWAuthenticate"}}
    return document
