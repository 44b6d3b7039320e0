"""Stand-ins for the container runtime of control planes' machines and the programs in it: their own programs take, send
and restore a snapshot, which is the cluster's part.
"""

from __future__ import annotations

import sys

from local.kubernetes import processes
from local.kubernetes.cluster import Cluster, InitFailed, Restored
from local.kubernetes.clusters import Clusters
from local.machines.programs import MachineSandbox

OBJECTS, REVISION, CONFIGURATION = "objects", "revision", "kubeadm-config"
RESTORED, KUBEADM = "etcd/restored", "restored.yaml"
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
    with open(os.path.join(os.environ["STOCKYARD_STATE"], "{REVISION}")) as file:
        print(json.dumps({{"revision": int(file.read())}}))
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
import os, sys
if "configmap" in sys.argv and "kubeadm-config" in sys.argv:
    with open(os.path.join(os.environ["STOCKYARD_STATE"], "{CONFIGURATION}")) as file:
        print(file.read())
elif "configmap" in sys.argv:
    print("kind: KubeletConfiguration")
""",
}
"""What stands for programs of a machine that a laptop lacks."""


def play(sandbox: MachineSandbox) -> None:
    """Write the programs that are played."""
    for name, text in _PLAYED.items():
        path = sandbox.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


def write(sandbox: MachineSandbox, cluster: Cluster) -> None:
    """Write the files that etcd and kubeadm have on the machine. Raises ``InitFailed`` while the cluster does not
    run."""
    play(sandbox)
    saved = cluster.save(sandbox.folder / OBJECTS)
    (sandbox.folder / REVISION).write_text(str(saved.revision), encoding="utf-8")
    (sandbox.folder / CONFIGURATION).write_text(saved.configuration, encoding="utf-8")
    for name, content in saved.keys.items():
        path = sandbox.folder / "kubernetes" / "pki" / name
        # On the first machine they may be the cluster's own, which its programs read meanwhile.
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            processes.write(path, content.encode())


def restored(sandbox: MachineSandbox, clusters: Clusters, endpoint: str, node: str) -> Cluster:
    """The cluster as the snapshot has it that the machine has restored, without any member. The machine's own node is
    to be called ``node``. Raises ``InitFailed``."""
    snapshot = sandbox.folder / RESTORED
    if not snapshot.exists():
        raise InitFailed("no snapshot was restored")
    return clusters.restored(endpoint, Restored(sandbox.folder, snapshot, sandbox.folder / KUBEADM, node))
