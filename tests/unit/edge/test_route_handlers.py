"""Arguments that a route gives to its handler: by the names of the handler's parameters."""

from __future__ import annotations

import pytest

from stockyard.edge.route import Answer, Roles


def served_cluster(request, services, cluster):
    """Get a cluster."""
    return Answer(200, {"id": cluster, "tenant": services})


def reading(world, handler, **more):
    declared = {"roles": Roles.READERS, "answers": {200: None}, **more}
    return world.http.route("GET /v1/clusters/{id}", **declared)(handler)


def test_handler_is_given_what_its_parameters_name(world):
    world.http._services = lambda request: request.caller.tenant
    world.http._finders = {"cluster": lambda request, services: f"{services}/{request.params['id']}"}
    assert reading(world, served_cluster) is served_cluster
    assert world.call("GET", "/v1/clusters/one").json == {"id": "acme/one", "tenant": "acme"}


@pytest.mark.parametrize("services", [lambda request: request.caller.tenant, None])
def test_parameter_that_nothing_is_known_of_fails_at_once(world, services):
    world.http._services = services
    with pytest.raises(TypeError, match=r"cannot be given .*cluster"):
        reading(world, served_cluster)


def test_nobody_has_called_an_open_route(world):
    world.http._services = lambda request: request.caller.tenant
    with pytest.raises(TypeError, match="cannot be given services"):
        reading(world, lambda request, services: Answer(200, {}), roles=Roles.NONE, open_because="it is health")
