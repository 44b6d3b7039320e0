"""The objects that install a cluster's agent where no machine of the cluster does it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.operations.services import Services


def agent_documents(services: Services, cluster: Cluster) -> tuple[Mapping[str, Any], ...]:
    """The answer of ``GET /agent`` to a control plane's machine: objects in the order of creation, with the credentials
    of the cluster's client as a Secret right after the namespace."""
    from agent import manifest, roles  # beside the function that runs phases, and not part of this layer

    settings = services.settings
    chosen_image = settings.agent_image or manifest.IMAGE
    documents: list[Mapping[str, Any]] = list(
        manifest.documents(manifest.Settings(settings.api_url, cluster.id, settings.token_url, chosen_image))
    )
    client = {"client_id": cluster.client_id, "client_secret": services.identity.client_secret(cluster.client_id)}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": manifest.SECRET, "namespace": roles.NAMESPACE},
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in client.items()},
    }
    position = next(index for index, document in enumerate(documents) if document["kind"] == "Namespace")
    return (*documents[: position + 1], secret, *documents[position + 1 :])
