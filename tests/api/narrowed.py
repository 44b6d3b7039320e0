"""The document of the API, narrowed to resources that exist in one cloud: what is generated from it gets through."""

from __future__ import annotations

from copy import deepcopy

from stockyard import kubernetes_versions
from tests.api.conftest import inlined

KUBECONFIG = "{clusters: [{name: k, cluster: {server: 'https://k'}}], users: [{name: k, user: {token: k}}]}"
POOL = "spare"
KIND = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}
LAB = {"name": "lab", "kind": "simulated", "spec": {"nodeTypes": [KIND]}}
MANIFEST = {
    "apiVersion": "management.loft.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "waiting"},
    "spec": {"vClusterRef": "later", "providerRef": "nobody"},
}
PODS = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2, "template": {"spec": {}}}}

PROFILE = {
    "name": "existing",
    "version": "1.0.0",
    "packs": [
        {
            "layer": "addon",
            "name": "site",
            "tag": "1",
            "manifests": [{"name": "site", "content": "{apiVersion: v1, kind: ConfigMap, metadata: {name: site}}"}],
        }
    ],
}


def narrowed(document, ids, versions):
    """The document for these ids and versions, to one key pair and few regions, without the platform's header."""
    for path, methods in document["paths"].items():
        kind = "pools" if path.endswith("/pools/{name}") else path.split("/")[2]
        for method, operation in methods.items():
            shared = (deepcopy(inlined(parameter, document)) for parameter in operation["parameters"])
            operation["parameters"] = [parameter for parameter in shared if parameter["name"] != "X-Stockyard-Tenant"]
            for parameter in operation["parameters"]:
                if kind == "pools" and parameter["name"] == "name":
                    parameter["schema"] = {"enum": [POOL]}
                elif parameter["in"] == "path":
                    parameter["schema"] = {"enum": [ids.get(f"{method} {kind}") or ids[kind]]}
                elif parameter["name"] == "If-Match":
                    # Each successful change makes the next version.
                    parameter["schema"] = {"enum": [f'"{versions[kind] + later}"' for later in range(4)]}
                elif parameter["name"] in ("page_token", "after", "wait"):
                    # No generated text can be a token or an id of this cloud, and nobody waits without one.
                    parameter["schema"]["enum"] = []
            operation["parameters"] = [
                parameter for parameter in operation["parameters"] if parameter["schema"].get("enum") != []
            ]
    schemas = document["components"]["schemas"]
    creation = schemas["ClusterCreate"]["properties"]
    creation["cloud_account_id"] = {"enum": [int(ids["cloud-accounts"])]}
    creation["name"] = {"type": "string", "pattern": "^made-[a-z]{8}$"}
    # The account is one of AWS, and the settings are those of its first driver, with a version that it has tested.
    # A change of profiles is an operation, in whose way all other changes of the cluster would be.
    for body in ("ClusterCreate", "ClusterPatch"):
        del schemas[body]["properties"]["profiles"]
    schemas["ClusterProfilesPut"]["properties"]["profiles"] = {"enum": [[{"name": "nothing"}]]}
    creation["driver"] = {"enum": ["ec2", None]}
    creation["kubernetes_version"] = {"enum": [*kubernetes_versions.NEW, None]}
    creation["settings"] = {"$ref": "#/components/schemas/AwsSettingsCreate"}
    settings = schemas["AwsSettingsCreate"]["properties"]
    settings |= {
        "key_pair": {"enum": ["my-key"]},
        "region_name": {"enum": ["us-east-1", "us-east-9", None]},
        "control_plane_instance_type": {"enum": ["t3.xlarge", "m5.large", None]},
        "api_cidrs": {**settings["api_cidrs"], "items": {"enum": ["0.0.0.0/0", "198.51.100.0/24"]}, "maxItems": 1},
        "ssh_cidrs": {**settings["ssh_cidrs"], "items": {"enum": ["198.51.100.7/32"]}, "maxItems": 1},
        "control_plane_instance_types": {"enum": [None, ["t3.xlarge", "m5.xlarge"]]},
        "vpc_cidr": {"enum": ["10.0.0.0/16", "192.168.0.0/20"]},
        "image": {"enum": [None, "ami-0123456789abcdef0"]},
    }
    # Nothing is made differently without the mirror; few examples have to bring a cluster about.
    for absent in ("vpc_id", "subnet_id", "mirror"):
        del settings[absent]
    schemas["NodeGroup"]["properties"]["instance_types"] |= {"items": {"enum": ["t3.xlarge"]}, "maxItems": 1}
    narrow_nodes(schemas)
    # Hardly any generated text of the pattern is a moment that there is.
    for report in ("Observation", "PendingPods"):
        schemas[report]["properties"]["observed_at"] = {"enum": ["2026-01-02T03:04:05Z"]}
    schemas["Observation"]["properties"]["pods"] = {"enum": [None]}
    schemas["PendingPods"]["properties"]["nodes"] = {"enum": [None, {}]}
    return document


def narrow_nodes(schemas):
    """Narrows providers, claims and manifests to valid ones. Other tests vary their details."""
    provider, claim = schemas["NodeProviderCreate"]["properties"], schemas["NodeClaimCreate"]["properties"]
    provider |= {
        "name": {"type": "string", "pattern": "^made-[a-z]{8}$"},
        "kind": {"enum": ["simulated"]},
        "spec": {"enum": [{}, {"nodeTypes": [KIND]}]},
        "properties": {"enum": [{}, {"team": "a,b"}]},
    }
    claim |= {
        "cluster": {"enum": ["existing"]},
        "provider": {"enum": ["lab", None]},
        "type": {"enum": ["lab.small", None]},
        "requirements": {"enum": [[], [{"key": "kubernetes.io/os", "values": ["linux"]}]]},
        "resources": {"enum": [{}, {"cpu": "1"}]},
        "properties": {"enum": [{}, {"team": "a"}]},
        "kubelet_args": {"enum": [{}, {"max-pods": "50"}]},
    }
    for taints in ("taints", "startup_taints"):
        claim[taints] = {"enum": [[], [{"key": "k", "effect": "NoSchedule"}]]}
    patch = schemas["NodeProviderPatch"]["properties"]
    patch |= {"properties": {"enum": [{}, {"team": "c"}, None]}, "spec": {"enum": [{}]}}
    for properties in (provider, claim, patch, schemas["NodeClaimPatch"]["properties"]):
        properties |= {"labels": {"enum": [{}, {"a": "b"}]}, "annotations": {"enum": [{}, {"a": "b c"}]}}
    schemas["PoolPatch"]["properties"] = {"quantity": {"enum": [0]}, "labels": {"enum": [{}, {"a": "b"}]}}
    schemas["Manifests"]["items"] = {"enum": [MANIFEST]}
    schemas["Manifests"]["maxItems"] = 1
    schemas["PlacementRequest"]["properties"] |= {
        "cluster": {"enum": ["existing", None]},
        "manifests": {**schemas["PlacementRequest"]["properties"]["manifests"], "items": {"enum": [PODS]}},
    }
    schemas["SimulationRequest"]["properties"] |= {
        "cluster": {"enum": [None]},
        "nodeTypes": {"enum": [[], [{"name": "small", "resources": {"cpu": 2, "memory": "4Gi"}, "usdPerHour": 0.1}]]},
        "pools": {"enum": [[], [{"name": "burst", "disruption": {"consolidateAfter": "5m"}}]]},
        "daemonSets": {"enum": [[]]},
        "startsAt": {"enum": ["2026-03-02T00:00:00+01:00"]},
        "until": {"enum": ["2h"]},
        "events": {"enum": [[{"at": "1h", "arrive": [PODS]}]]},
    }
    schemas["AllowedNodeTypesPut"]["properties"]["allowed"] = {"enum": [None, ["lab.*"]]}
    schemas["EventAccountsPut"]["properties"]["accounts"] = {"enum": [[], ["888888888888"]]}
    schemas["ReadyReport"]["properties"]["kubeconfig"] = {"enum": [KUBECONFIG]}
