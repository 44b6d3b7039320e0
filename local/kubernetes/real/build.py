"""Builds the programs of a real control plane into ``.cache/kubernetes``.

    python -m local.kubernetes.real.build

Go must be there. ``k8s.io/kubernetes`` replaces its staging modules by folders, so ``go install`` refuses it: the
modules beside this file repeat those replacements with versions, for the newest minor and for the one before. kwok
plays the kubelets. The first time takes some fifteen minutes on two cores, and 4 GB.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

from stockyard.machines import manifests

HERE = Path(__file__).resolve().parent
BINARIES = HERE.parents[2] / ".cache" / "kubernetes"
MANIFESTS = BINARIES / "manifests"
PREVIOUS = ("kubeadm", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Of the minor before, from which control planes are upgraded."""
KUBERNETES = ("kubeadm", "kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler")
PACKAGES = {
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3"),
    "etcdctl": ("etcd", "go.etcd.io/etcd/etcdctl/v3"),
    "etcdutl": ("etcd", "go.etcd.io/etcd/etcdutl/v3"),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
}
"""Program -> folder of its module, and package. Projects have modules of their own, so that none decides for another
what it is built with."""
STAGES = "kwok.yaml"
"""How kwok plays nodes and pods: its own documents, which its module holds."""
_PLAYED = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-complete",
    "pod/fast/pod-delete",
)
_VERSION = "k8s.io/component-base/version"


def release(module: str = "kubernetes") -> str:
    """The release that is built: ``1.35.4``. ``kubernetes_previous``: of the minor before."""
    module = (HERE / module / "go.mod").read_text(encoding="utf-8")
    version = re.search(r"^require k8s\.io/kubernetes v(\S+)", module, re.MULTILINE)
    if version is None:
        raise ValueError("go.mod requires no k8s.io/kubernetes")
    return version[1]


def missing() -> str:
    """Why the programs cannot be run; empty when they are there."""
    if sys.platform != "linux":
        return "each control plane needs a loopback address of its own, as Linux has them"
    absent = [name for name in (*KUBERNETES, *PACKAGES, STAGES) if not (BINARIES / release() / name).exists()]
    return f"{', '.join(absent)} not built: run make kubernetes" if absent else ""


def missing_previous() -> str:
    """Why no control plane of the minor before can be run; empty when it can."""
    older = release("kubernetes_previous")
    absent = [name for name in PREVIOUS if not (BINARIES / older / name).exists()]
    return f"{', '.join(absent)} of {older} not built: run make kubernetes" if absent else ""


def fetch_manifests() -> None:
    """Fetch what is absent of the manifests that a control plane applies. What cannot be reached stays absent."""
    for source in (manifests.FLANNEL, manifests.CLOUD_CONTROLLER, manifests.EBS_DRIVER, manifests.DEVICE_PLUGIN):
        for line in source.sums():
            digest, path = line.split()
            out = MANIFESTS / path
            if out.exists():
                continue
            try:
                with urllib.request.urlopen(f"{manifests.BASE}/{path}", timeout=20) as answer:  # noqa: S310
                    text: bytes = answer.read()
            except OSError as error:
                sys.stderr.write(f"{path}: {error}\n")
                return
            if hashlib.sha256(text).hexdigest() != digest:
                raise ValueError(f"{path} is not what was pinned")
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_bytes(text)


def _build(module: str, package: str, out: Path, flags: str = "-s -w") -> None:
    part = out.with_suffix(".part")
    command = ["go", "build", "-trimpath", "-mod=readonly", "-ldflags", flags, "-o", str(part), package]
    subprocess.run(command, cwd=HERE / module, check=True)
    part.rename(out)
    sys.stdout.write(f"built {out.name}\n")
    sys.stdout.flush()


def _build_kubernetes(module: str, names: tuple[str, ...]) -> None:
    """Programs of Kubernetes that say which release they are."""
    version = release(module)
    folder = BINARIES / version
    folder.mkdir(parents=True, exist_ok=True)
    major, minor, _ = version.split(".")
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(("-s -w", *(f"-X {_VERSION}.{name}={value}" for name, value in stamps.items())))
    for name in names:
        if not (folder / name).exists():
            _build(module, f"k8s.io/kubernetes/cmd/{name}", folder / name, flags)


def _stages(out: Path) -> None:
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]
    done = subprocess.run(command, cwd=HERE / "kwok", check=True, capture_output=True, text=True)
    folder = Path(done.stdout.strip()) / "kustomize" / "stage"
    out.write_text("\n---\n".join((folder / f"{name}.yaml").read_text(encoding="utf-8") for name in _PLAYED))


def main() -> int:
    """Builds what is missing. 2 without Go."""
    if shutil.which("go") is None:
        sys.stderr.write("Go is needed to build Kubernetes: https://go.dev/dl\n")
        return 2
    folder = BINARIES / release()
    for module, names in (("kubernetes", KUBERNETES), ("kubernetes_previous", PREVIOUS)):
        _build_kubernetes(module, names)
    for name, (module, package) in PACKAGES.items():
        if not (folder / name).exists():
            _build(module, package, folder / name)
    _stages(folder / STAGES)
    fetch_manifests()
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
