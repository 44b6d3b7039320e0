"""What machines of simulated clusters have instead of etcd, kubeadm and a container runtime: a snapshot is the list of
the cluster's objects, which their own programs take, send and restore.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from local.kubernetes.cluster import InitFailed
from local.kubernetes.clusters import Clusters
from local.kubernetes.simulated import SimulatedCluster
from local.kubernetes.store import Key, Object
from local.machines.programs import Place

OBJECTS, RESTORED = "objects.json", "etcd/restored.json"
_PLAYED = {
    "crictl": f"""#!{sys.executable}
import json, os, shutil, sys
words = sys.argv
if "ps" in words:
    print("etcd")
elif "save" in words:
    os.makedirs(os.path.dirname(words[-1]), exist_ok=True)
    shutil.copy(os.path.join(os.environ["STOCKYARD_STATE"], "{OBJECTS}"), words[-1])
elif "status" in words:
    with open(words[-1]) as file:
        print(json.dumps({{"revision": len(json.load(file))}}))
""",
    "ctr": f"""#!{sys.executable}
import os, shutil, sys
source = sys.argv[sys.argv.index("restore", sys.argv.index("snapshot")) + 1]
target = os.path.join(os.environ["STOCKYARD_STATE"], "{RESTORED}")
os.makedirs(os.path.dirname(target), exist_ok=True)
shutil.copy(source, target)
""",
    "kubeadm": f"""#!{sys.executable}
import sys
if sys.argv[1] == "config":
    print("registry.k8s.io/etcd:3.6.4-0")
""",
    "kubectl": f"""#!{sys.executable}
import sys
if "configmap" in sys.argv:
    print("kubernetesVersion: v1.0.0" if "kubeadm-config" in sys.argv else "kind: KubeletConfiguration")
""",
}
"""What stands for programs of a machine that a laptop lacks."""
_KEYS = ("front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub", "etcd/ca.crt", "etcd/ca.key")


def play(place: Place) -> None:
    """Write the programs that are played."""
    for name, text in _PLAYED.items():
        path = place.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


def write(place: Place, cluster: SimulatedCluster) -> None:
    """What etcd and kubeadm have on the machine."""
    play(place)
    with cluster.api.locked_store() as store:
        text = json.dumps([[asdict(key), document] for key, document in store.objects.items()])
    (place.folder / OBJECTS).write_text(text, encoding="utf-8")
    pki = place.folder / "kubernetes" / "pki"
    authority = {"ca.crt": cluster.authority.pem, "ca.key": cluster.authority.key}
    for name, content in {**dict.fromkeys(_KEYS, "played"), **authority}.items():
        (pki / name).parent.mkdir(parents=True, exist_ok=True)
        (pki / name).write_text(content, encoding="utf-8")


def restored(place: Place, clusters: Clusters, endpoint: str) -> SimulatedCluster:
    """The cluster as the snapshot has it that the machine has restored, without any member. Raises ``InitFailed``."""
    path = place.folder / RESTORED
    if not path.exists():
        raise InitFailed("no snapshot was restored")
    listed: list[tuple[dict[str, str], Object]] = json.loads(path.read_text(encoding="utf-8"))
    objects = {Key(**key): document for key, document in listed}
    pki = place.folder / "kubernetes" / "pki"
    certificate, key = ((pki / part).read_text(encoding="utf-8") for part in ("ca.crt", "ca.key"))
    folder: Path = place.folder.with_name(f"{place.folder.name}.kubernetes")
    return clusters.restored(endpoint, objects, (certificate, key), folder)
