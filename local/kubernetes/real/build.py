"""Builds the programs of a real control plane into ``.cache/kubernetes``.

    python -m local.kubernetes.real.build

Go must be there. ``k8s.io/kubernetes`` replaces its staging modules by folders, so ``go install`` refuses it: the
modules beside this file repeat those replacements with versions, for the newest minor and for the one before. Each has
the etcd that its kubeadm runs. kwok plays the kubelets. The first time takes some fifteen minutes on two cores, and 4
GB.

AWS's cloud controller is built for both minors too, and AWS's driver of volumes, with Kubernetes' own choice of
libraries, so that most of what they need is compiled already: Go knows a package again by its folder, unless paths are
trimmed. Where their source cannot be fetched, all else is built.
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
KUBERNETES = ("kubeadm", "kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler")
ETCD = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "etcdctl": "go.etcd.io/etcd/etcdctl/v3",
    "etcdutl": "go.etcd.io/etcd/etcdutl/v3",
}
"""Program -> package."""
ETCD_MODULES = {"kubernetes": "etcd", "kubernetes_previous": "etcd_previous"}
"""Module of Kubernetes -> that of etcd. Projects have modules of their own, so that none decides for another what it is
built with."""
KWOK, _KWOK = "kwok", "sigs.k8s.io/kwok"
CLOUD_CONTROLLER = "aws-cloud-controller-manager"
CLOUD_MODULES = {"kubernetes": "cloud_controller", "kubernetes_previous": "cloud_controller_previous"}
"""Module of Kubernetes -> that of the cloud controller of the same minor."""
_CLOUD = "k8s.io/cloud-provider-aws"
DRIVER, CALLER = "aws-ebs-csi-driver", "csi-call"
"""The driver, and our own program that asks it as Kubernetes' helpers do."""
_DRIVER_MODULE = "ebs_driver"
_DRIVER = f"github.com/kubernetes-sigs/{DRIVER}"
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
_QUICKLY = "-gcflags=github.com/aws/...=-N -l"
"""AWS's clients are so large that their optimization takes longer than all else of the programs that have them."""


def required(module: str, path: str) -> str:
    """The version of another module that ours, a folder, requires. Raises ``ValueError``."""
    text = (HERE / module / "go.mod").read_text(encoding="utf-8")
    version = re.search(rf"^(?:require |\t){re.escape(path)} v(\S+)", text, re.MULTILINE)
    if version is None:
        raise ValueError(f"go.mod of {module} requires no {path}")
    return version[1]


def release(module: str = "kubernetes") -> str:
    """The release that is built: ``1.37.2``. ``kubernetes_previous``: of the minor before."""
    return required(module, "k8s.io/kubernetes")


def releases() -> dict[str, str]:
    """Minor -> release of what is built."""
    return {version.rpartition(".")[0]: version for version in map(release, CLOUD_MODULES)}


def minors() -> tuple[str, str]:
    """The older and the newer minor of what is built."""
    newer, older = releases()
    return older, newer


def missing() -> str:
    """Reason why the programs cannot be run; empty when they are there."""
    if sys.platform != "linux":
        return "each control plane needs a loopback address of its own, as Linux has them"
    absent = [name for name in (*KUBERNETES, *ETCD, KWOK, STAGES) if not (BINARIES / release() / name).exists()]
    return f"{', '.join(absent)} not built: run make kubernetes" if absent else ""


def kubectl(version: str) -> Path:
    """Path of the client of a release, once that is built."""
    return BINARIES / version / "kubectl"


def missing_previous() -> str:
    """Reason why no control plane of the minor before can be run; empty when it can."""
    older = release("kubernetes_previous")
    absent = [name for name in (*KUBERNETES, *ETCD) if not (BINARIES / older / name).exists()]
    return f"{', '.join(absent)} of {older} not built: run make kubernetes" if absent else ""


def missing_cloud() -> str:
    """Reason why no cloud controller can be run; empty when one can."""
    absent = [version for version in releases().values() if not (BINARIES / version / CLOUD_CONTROLLER).exists()]
    if absent:
        return f"{CLOUD_CONTROLLER} of {', '.join(absent)} not built: run make kubernetes"
    files = [line.split()[1] for line in manifests.CLOUD_CONTROLLER.sums()]
    lacking = [path for path in files if not (MANIFESTS / path).exists()]
    return f"{', '.join(lacking)} not fetched: run make kubernetes" if lacking else ""


def missing_driver() -> str:
    """Reason why no driver of volumes can be run; empty when one can."""
    absent = [name for name in (DRIVER, CALLER, f"{DRIVER}.yaml") if not (BINARIES / release() / name).exists()]
    return f"{', '.join(absent)} not built: run make kubernetes" if absent else ""


def driver_manifests() -> Path:
    """The folder of the driver's manifests: those that were pinned, or else those of its source."""
    pinned = [MANIFESTS / line.split()[1] for line in manifests.EBS_DRIVER.sums()]
    is_whole = all(path.exists() for path in pinned)
    return pinned[0].parent if is_whole else BINARIES / release() / f"{DRIVER}.yaml"


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
    command = ["go", "build", "-mod=readonly", _QUICKLY, "-ldflags", flags, "-o", str(part), package]
    subprocess.run(command, cwd=HERE / module, check=True)
    part.rename(out)
    sys.stdout.write(f"built {out.name}\n")
    sys.stdout.flush()


def _build_kubernetes(module: str) -> None:
    """Programs of Kubernetes and of its etcd, with their releases in them."""
    version = release(module)
    folder = BINARIES / version
    folder.mkdir(parents=True, exist_ok=True)
    major, minor, _ = version.split(".")
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(("-s -w", *(f"-X {_VERSION}.{name}={value}" for name, value in stamps.items())))
    for name in KUBERNETES:
        if not (folder / name).exists():
            _build(module, f"k8s.io/kubernetes/cmd/{name}", folder / name, flags)
    for name, package in ETCD.items():
        if not (folder / name).exists():
            _build(ETCD_MODULES[module], package, folder / name)


def source(module: str, path: str) -> Path:
    """Folder of the source of the module ``path`` that our ``module`` requires."""
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", path]
    done = subprocess.run(command, cwd=HERE / module, check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


def _build_cloud() -> None:
    """The cloud controllers, and their manifests where those of the source are what was pinned."""
    for kubernetes, module in CLOUD_MODULES.items():
        out = BINARIES / release(kubernetes) / CLOUD_CONTROLLER
        if not out.exists():
            _build(module, f"{_CLOUD}/cmd/{CLOUD_CONTROLLER}", out)
    folder = source(CLOUD_MODULES["kubernetes"], _CLOUD) / manifests.CLOUD_CONTROLLER.folder
    for line in manifests.CLOUD_CONTROLLER.sums():
        digest, path = line.split()
        content = (folder / Path(path).name).read_bytes()
        if hashlib.sha256(content).hexdigest() == digest:
            (MANIFESTS / path).parent.mkdir(parents=True, exist_ok=True)
            (MANIFESTS / path).write_bytes(content)


def _build_driver() -> None:
    """The driver of volumes, its manifests, and what asks it."""
    folder = BINARIES / release()
    for name, package in ((DRIVER, f"{_DRIVER}/cmd"), (CALLER, f"./{CALLER}")):
        if not (folder / name).exists():
            _build(_DRIVER_MODULE, package, folder / name)
    folder_of_manifests = source(_DRIVER_MODULE, _DRIVER) / manifests.EBS_DRIVER.folder
    shutil.rmtree(folder / f"{DRIVER}.yaml", ignore_errors=True)
    (folder / f"{DRIVER}.yaml").mkdir()
    for path in folder_of_manifests.glob("*.yaml"):
        (folder / f"{DRIVER}.yaml" / path.name).write_bytes(path.read_bytes())


def _stages(out: Path) -> None:
    folder = source(KWOK, _KWOK) / "kustomize" / "stage"
    out.write_text("\n---\n".join((folder / f"{name}.yaml").read_text(encoding="utf-8") for name in _PLAYED))


def main() -> int:
    """Builds what is missing. 2 without Go."""
    if shutil.which("go") is None:
        sys.stderr.write("Go is needed to build Kubernetes: https://go.dev/dl\n")
        return 2
    folder = BINARIES / release()
    for module in ETCD_MODULES:
        _build_kubernetes(module)
    if not (folder / KWOK).exists():
        _build(KWOK, f"{_KWOK}/cmd/{KWOK}", folder / KWOK)
    _stages(folder / STAGES)
    for name, build in ((CLOUD_CONTROLLER, _build_cloud), (DRIVER, _build_driver)):
        try:
            build()
        except (OSError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"no {name}: {error}\n")
    fetch_manifests()
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
