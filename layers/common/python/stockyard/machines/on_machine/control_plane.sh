# A control plane.
program=/usr/local/lib/stockyard/stockyard_machine.py
cni="$4" cni_sha256="$5"
export KUBECONFIG=/etc/kubernetes/admin.conf

# A load balancer does not send a machine's own connections back to it, so its name means this machine here.
name_endpoint() {
    local endpoint
    endpoint="$(cat /etc/stockyard/endpoint)"
    grep -qF " ${endpoint}" /etc/hosts || echo "127.0.0.1 ${endpoint}" >>/etc/hosts
}

fetch_cni() {
    curl -fsSL -o /etc/stockyard/cni.yaml "$cni" &&
        echo "${cni_sha256}  /etc/stockyard/cni.yaml" | sha256sum --check --quiet
}

begin packages
command -v kubeadm >/dev/null && test -s /etc/containerd/config.toml || install_packages kubeadm kubelet kubectl
begin bootstrap
python3 "$program" bootstrap
name_endpoint
begin init
# A control plane that was there before needs a while after a restart, and holds what nothing brings back.
if ! { test -s /etc/kubernetes/admin.conf && again kubectl get --raw /readyz >/dev/null; }; then
    test -s /etc/kubernetes/admin.conf && kubeadm reset --force
    kubeadm init --config /etc/stockyard/kubeadm.yaml --skip-token-print
fi
again kubectl get --raw /readyz
# With it any token of kubeadm's would get the certificate of any node's name. The agent approves, for the name of the
# token alone.
again kubectl delete clusterrolebinding kubeadm:node-autoapprove-bootstrap --ignore-not-found
begin network
again fetch_cni
again kubectl apply -f /etc/stockyard/cni.yaml
if test -s /etc/stockyard/administrator.json; then
    again kubectl apply -f /etc/stockyard/administrator.json
fi
again kubectl wait --for=condition=Ready nodes --all --timeout=120s
begin agent
python3 "$program" agent
again kubectl apply --server-side --force-conflicts --field-manager=stockyard-agent -f /etc/stockyard/agent.json
rm -f /etc/stockyard/agent.json
begin report
python3 "$program" ready
systemctl enable --now stockyard-renew.timer
