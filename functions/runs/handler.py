"""Runs of node providers' own programs: what their programs and OpenTofu ask for by the token of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stockyard import wiring
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.query import Query
from stockyard.errors import NotFound

if TYPE_CHECKING:
    from stockyard.domain.run_records import ProviderRun
    from stockyard.operations.services import Services

http = wiring.http("runs")
lambda_handler = http.lambda_handler

BY_TOKEN = "The program of a run has no token of the realm; it proves itself by the token of its run"  # noqa: S105 - a reason
LOCK_ID = Query("ID", "The id of the lock that the caller holds.")


def _check_token(params: Mapping[str, str], credential: str | None) -> None:
    """``Unauthorized`` unless it is the token of the path's run, whether that is under way or not."""
    from stockyard.operations.runs.tokens import tenant_of

    tenant_of(wiring.machine_key(), credential, params["id"])


def _proven(request: Request) -> tuple[Services, ProviderRun]:
    """The run of the path, whose token was sent, with its tenant's services. ``Unauthorized`` for any other token."""
    from stockyard.operations.runs import proven_run
    from stockyard.operations.runs.tokens import tenant_of

    run_id = request.params["id"]
    services = wiring.services(tenant_of(wiring.machine_key(), request.credential, run_id))
    return services, proven_run(services, run_id)


@http.route(
    "POST /v1/runs/{id}/begin",
    open_because=BY_TOKEN,
    proof=_check_token,
    body="runs:RunBegin",
    answers={200: "runs:RunTask"},
    description="Once: 409 for whoever begins it again, or when what it works for is over.",
)
def begin_run(request: Request) -> Answer:
    """A run's program fetches its task. Only one that is started first gets it."""
    from stockyard.operations.runs import begin

    services, run = _proven(request)
    task = begin(services, wiring.seals(), run)
    record = services.audit_record(f"run:{run.name}", "BeginRun", run.subject, request.request_id)
    wiring.audit(services.tenant, record)
    return Answer(200, task, subject=run.subject, audited=True)


@http.route(
    "POST /v1/runs/{id}/log",
    open_because=BY_TOKEN,
    proof=_check_token,
    body="runs:RunLines",
    answers={202: "runs:RunHeard"},
    audited=False,
    large=True,
    description="Repeatable: lines have numbers. None at all shows that the program is alive.",
)
def post_run_log(request: Request) -> Answer:
    """A run's program sends lines that it printed. Values of secrets are hidden. The answer says whether to stop."""
    from stockyard.operations.runs import is_needless, keep_lines

    services, run = _proven(request)
    keep_lines(services, wiring.seals(), run, request.body.first, request.body.lines)
    return Answer(202, {"status": "accepted", "stop": is_needless(services, run)})


@http.route(
    "POST /v1/runs/{id}/end",
    open_because=BY_TOKEN,
    proof=_check_token,
    body="runs:RunEnded",
    answers={202: "runs:RunAccepted"},
    large=True,
    description="Repeatable: the first end stays. The token is of no use after it.",
)
def end_run(request: Request) -> Answer:
    """A run's program tells how the run ended. Outputs are kept sealed until the work that waits for them has them."""
    from stockyard.operations.runs import RunReport, end_of

    services, run = _proven(request)
    body = request.body
    end_of(services, wiring.seals(), run, RunReport(body.end, body.error, body.is_empty, body.commit, body.result))
    record = services.audit_record(f"run:{run.name}", "EndRun", run.subject, request.request_id, body.end)
    wiring.audit(services.tenant, record)
    return Answer(202, {"status": "accepted"}, subject=run.subject, audited=True)


@http.route("GET /v1/runs/{id}/state", open_because=BY_TOKEN, proof=_check_token, answers={200: "runs:SealedState"})
def get_run_state(request: Request) -> Answer:
    """Get the state that a run works on. As its program has sealed it; 404 while nothing was kept."""
    from stockyard.operations.runs import read_state

    services, run = _proven(request)
    document = read_state(services, run)
    if document is None:
        raise NotFound("Nothing was kept yet.")
    return Answer(200, document)


@http.route(
    "POST /v1/runs/{id}/state",
    open_because=BY_TOKEN,
    proof=_check_token,
    body="runs:SealedState",
    answers={200: "runs:RunAccepted"},
    audited=False,
    large=True,
    query=(LOCK_ID,),
    description="409 unless the run holds the lock.",
)
def put_run_state(request: Request) -> Answer:
    """Keep the state that a run works on. Only sealed ones are taken."""
    from stockyard.operations.runs import write_state

    services, run = _proven(request)
    write_state(services, run, request.body.model_dump(), request.query.get("ID"))
    return Answer(200, {"status": "accepted"})


@http.route(
    "DELETE /v1/runs/{id}/state",
    open_because=BY_TOKEN,
    proof=_check_token,
    answers={200: "runs:RunAccepted"},
    audited=False,
)
def delete_run_state(request: Request) -> Answer:
    """Remove the state that a run works on. 409 unless the run holds the lock."""
    from stockyard.operations.runs import remove_state

    services, run = _proven(request)
    remove_state(services, run)
    return Answer(200, {"status": "accepted"})


@http.route(
    "PUT /v1/runs/{id}/lock",
    open_because=BY_TOKEN,
    proof=_check_token,
    body="runs:LockInfo",
    answers={200: "runs:LockInfo", 423: "runs:LockInfo"},
    audited=False,
)
def lock_run_state(request: Request) -> Answer:
    """Lock the state that a run works on. 423 tells who holds the lock."""
    from stockyard.operations.runs import take_lock

    info = request.body.model_dump(by_alias=True, exclude_none=True)
    services, run = _proven(request)
    holder = take_lock(services, run, request.body.id, info)
    return Answer(200, info) if holder is None else Answer(423, holder)


@http.route(
    "DELETE /v1/runs/{id}/lock",
    open_because=BY_TOKEN,
    proof=_check_token,
    answers={200: "runs:RunAccepted"},
    audited=False,
)
def unlock_run_state(request: Request) -> Answer:
    """Unlock the state that a run works on. A lock that a run before has left behind is broken."""
    from stockyard.operations.runs import unlock

    services, run = _proven(request)
    unlock(services, run)
    return Answer(200, {"status": "accepted"})
