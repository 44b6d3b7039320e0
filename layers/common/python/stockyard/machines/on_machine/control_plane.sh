# A control plane.
cni="$2"
export KUBECONFIG=/etc/kubernetes/admin.conf

# A load balancer does not send a machine's own connections back to it, so its name means this machine here.
name_endpoint() {
    local endpoint
    endpoint="$(cat /etc/stockyard/endpoint)"
    grep -qF " ${endpoint}" /etc/hosts || echo "127.0.0.1 ${endpoint}" >>/etc/hosts
}

command -v kubeadm >/dev/null && test -s /etc/containerd/config.toml || install_packages kubeadm kubelet kubectl
python3 /usr/local/lib/stockyard/stockyard_machine.py bootstrap
name_endpoint
if ! kubectl get --raw /readyz >/dev/null 2>&1; then
    test -s /etc/kubernetes/admin.conf && kubeadm reset --force
    kubeadm init --config /etc/stockyard/kubeadm.yaml
fi
again kubectl get --raw /readyz
again kubectl apply -f "$cni"
if test -s /etc/stockyard/administrator.json; then
    again kubectl apply -f /etc/stockyard/administrator.json
fi
again kubectl wait --for=condition=Ready nodes --all --timeout=120s
python3 /usr/local/lib/stockyard/stockyard_machine.py agent
again kubectl apply --server-side --force-conflicts --field-manager=stockyard-agent -f /etc/stockyard/agent.json
rm -f /etc/stockyard/agent.json
python3 /usr/local/lib/stockyard/stockyard_machine.py ready
