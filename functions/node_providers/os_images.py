"""Images of operating systems over HTTP, which properties of node types name."""

from __future__ import annotations

from typing import Any

from functions.node_providers.routes import http
from stockyard import wiring
from stockyard.domain.nodes.os_images import OSImage
from stockyard.domain.nodes.views import os_image_view
from stockyard.domain.values import ids
from stockyard.domain.views import operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.identity import Roles
from stockyard.lifecycle.operation import progress
from stockyard.operations.services import Services

VIEW = "nodes.os_images:OSImageView"


def _answer(image: OSImage, status: int, **more: Any) -> Answer:
    return Answer(status, os_image_view(image), version=image.version, subject=image.id, **more)


@http.route(
    "POST /v1/os-images",
    roles=Roles.ADMINISTRATORS,
    body="nodes.os_images:OSImageCreate",
    answers={201: VIEW, 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def create_os_image(request: Request, services: Services) -> Answer:
    """Enter an OS image. An image that machines of one's own are written from, by a name."""
    from stockyard.operations.node_providers import os_images

    body = request.body
    if request.dry_run:
        os_images.check_new(services, body.name)
        return Answer.free_plan(creates=[{"kind": "os-image", "name": body.name}])
    image_id = request.stable_id(ids.OS_IMAGE) or services.new_id(ids.OS_IMAGE)
    image = os_images.create_os_image(services, body.name, body.content(), request.caller.actor, image_id)
    return _answer(image, 201, location=f"/v1/os-images/{image.id}")


@http.route("GET /v1/os-images", roles=Roles.READERS, answers={200: VIEW}, paged=True)
def list_os_images(request: Request) -> Answer:
    """List OS images. In the order in which they were entered."""
    store = wiring.store(request.caller.tenant)
    return Answer.matching(
        request.page, lambda after, limit: store.list(OSImage, after=after, limit=limit), lambda _: True, os_image_view
    )


@http.route("GET /v1/os-images/{id}", roles=Roles.READERS, answers={200: VIEW}, waits=True)
def get_os_image(request: Request, services: Services) -> Answer:
    """Get an OS image. By its id or its name."""
    from stockyard.operations.node_providers import os_images

    return _answer(os_images.find_os_image(services, request.params["id"]), 200)


@http.route(
    "PATCH /v1/os-images/{id}",
    roles=Roles.ADMINISTRATORS,
    body="nodes.os_images:OSImagePatch",
    answers={200: VIEW},
    if_match=True,
    dry_run=True,
)
def change_os_image(request: Request, services: Services) -> Answer:
    """Change an OS image. A JSON merge patch; machines that were written from it stay, and are seen as drifted."""
    from stockyard.operations.node_providers import os_images

    image = os_images.find_os_image(services, request.params["id"])
    content = request.body.content(image)
    if request.dry_run:
        changed = os_images.changed_os_image(services, image, request.version, content)
        before, after = os_image_view(image), os_image_view(changed)
        fields = {name: after[name] for name in request.body.model_fields_set}
        return Answer.change_plan(before, fields, "os-image", image.name)
    actor, request_id = request.caller.actor, request.request_id
    changed = os_images.change_os_image(services, image, request.version, content, actor, request_id)
    return _answer(changed, 200, audited=True)


@http.route(
    "DELETE /v1/os-images/{id}",
    roles=Roles.ADMINISTRATORS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    dry_run=True,
)
def delete_os_image(request: Request, services: Services) -> Answer:
    """Remove an OS image. Only when no node provider names it. The operation has succeeded when it is answered."""
    from stockyard.operations.node_providers import os_images

    image = os_images.find_os_image(services, request.params["id"])
    if request.dry_run:
        os_images.check_unused(services, image)
        return Answer.free_plan(deletes=[{"kind": "os-image", "name": image.name}])
    operation = os_images.delete_os_image(services, image, request.caller.actor)
    return Answer.accepted(operation_view(operation, progress(operation)), operation.id, subject=operation.subject)
