# A member of a control plane after the first.
program=/usr/local/lib/stockyard/stockyard_node.py
member=/usr/local/lib/stockyard/stockyard_member.py
export KUBECONFIG=/etc/kubernetes/admin.conf
config=/etc/stockyard/join.yaml
data=/var/lib/control-plane/etcd

# Once it is a voter of etcd and its kubelet has a certificate, nothing of it is ever begun anew.
joined() { test -s /etc/kubernetes/kubelet.conf && voter; }

voter() { test -s /etc/kubernetes/manifests/etcd.yaml && python3 "$member" voter; }

# What an earlier try has left would stop kubeadm, in etcd as well as here.
begin_anew() {
    if test -s "$KUBECONFIG"; then
        again python3 "$member" peers
        again python3 "$member" leave
    fi
    kubeadm reset --force
    rm -rf "$data"
}

# The keys come first, because with them the members can be asked. Nothing else of a member is written before the
# cluster's own documents are of its version.
prepare_member() {
    local part
    for part in download-certs certs kubeconfig; do
        kubeadm join phase control-plane-prepare "$part" --config "$config" || return 1
    done
    again python3 "$member" peers
    again python3 "$member" make-room
    again raise_version
}

# The documents by which kubeadm knows the cluster are of an older release: the first member of a newer one brings them
# to its own, as `kubeadm upgrade` does. They never go back.
raise_version() {
    local settings kubelet have
    settings="$(kubectl --namespace kube-system get configmap kubeadm-config --output 'jsonpath={.data.ClusterConfiguration}')" || return 1
    kubelet="$(kubectl --namespace kube-system get configmap kubelet-config --output 'jsonpath={.data.kubelet}')" || return 1
    have="$(sed -n 's/^kubernetesVersion: //p' <<<"$settings")"
    if test "$(printf '%s\n' "$have" "v${release}" | sort --version-sort | tail -n 1)" = "$have"; then return 0; fi
    printf '%s\n---\n%s\n' "${settings/kubernetesVersion: ${have}/kubernetesVersion: v${release}}" "$kubelet" \
        >/etc/stockyard/cluster.yaml
    # From 1.36 on kubeadm asks this machine's API server, which does not run yet, where the file is its own admin.conf.
    ln -sf "$KUBECONFIG" /etc/stockyard/admin.conf
    kubeadm init phase upload-config all --config /etc/stockyard/cluster.yaml --kubeconfig /etc/stockyard/admin.conf
}

# Whether this machine is to begin the control plane anew from a snapshot, and has not done so yet.
restores() { test -s /etc/stockyard/restore.json && ! test -e /etc/stockyard/restored; }

# What `kubeadm join` does at last, and a second try has to do without it.
mark_member() {
    local name taint=node-role.kubernetes.io/control-plane:NoSchedule
    name="$(sed -n 's/.*"node_name": "\([^"]*\)".*/\1/p' /etc/stockyard/member.json)" || return 1
    if grep -qF '"workloads": true' /etc/stockyard/member.json; then taint="${taint}-"; fi
    kubectl label --overwrite node "$name" node-role.kubernetes.io/control-plane= \
        node.kubernetes.io/exclude-from-external-load-balancers= || return 1
    kubectl taint --overwrite node "$name" "$taint" || test "${taint: -1}" = -
}

# The network's proxy and the names of services are brought to a new release once no member of the old one is left.
raise_addons() {
    local image
    image="$(kubectl --namespace kube-system get daemonset kube-proxy --ignore-not-found \
        --output 'jsonpath={.spec.template.spec.containers[0].image}')" || return 1
    if test -z "$image" || test "${image##*:}" = "v${release}" || ! python3 "$member" current; then return 0; fi
    kubectl --namespace kube-system get configmap kubeadm-config \
        --output 'jsonpath={.data.ClusterConfiguration}' >/etc/stockyard/cluster.yaml || return 1
    kubeadm init phase addon all --config /etc/stockyard/cluster.yaml
}

begin packages
prepare_machine kubeadm kubelet kubectl
if restores || ! joined; then
    begin ask
    python3 "$member" ask
    begin join
    if restores; then
        # Nobody has joined what is begun here, so each try begins with nothing.
        begin restore
        kubeadm reset --force
        rm -rf "$data"
        python3 /etc/stockyard/stockyard_restore.py
        touch /etc/stockyard/restored
    elif voter; then
        # Only its node is missing; the token that it began with may have ended.
        kubeadm join phase kubelet-start --config "$config"
        again test -s /etc/kubernetes/kubelet.conf
    else
        begin_anew
        prepare_member
        kubeadm join --config "$config" --skip-phases control-plane-prepare/download-certs
    fi
fi
begin mark
rm -f "$config" /etc/stockyard/restored.yaml
again kubectl get --raw /readyz
again mark_member
python3 "$member" settle
begin report
python3 "$member" report
again raise_addons
(cd /etc/systemd/system && systemctl enable --now stockyard-*.timer)
