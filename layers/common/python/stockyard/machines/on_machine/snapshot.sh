#!/usr/bin/env bash
# Takes a snapshot of etcd beside its data; the last four stay. The first also copies the keys that another machine needs
# to go on with the data (authorities, the key of Secrets, the cluster's own client), and what it has to be told; but not
# where the disk is encrypted: another machine is told another way into the Vault.
set -euo pipefail
volume=/var/lib/control-plane
pki=/etc/kubernetes/pki
runtime() { crictl --runtime-endpoint unix:///run/containerd/containerd.sock "$@"; }

install -d -m 0700 "${volume}/snapshots"
etcd="$(runtime ps --quiet --state running --name '^etcd$')"
runtime exec "$etcd" etcdctl --endpoints https://127.0.0.1:2379 --cacert "${pki}/etcd/ca.crt" \
    --cert "${pki}/etcd/healthcheck-client.crt" --key "${pki}/etcd/healthcheck-client.key" \
    snapshot save "${volume}/etcd/snapshot.db"
mv "${volume}/etcd/snapshot.db" "${volume}/snapshots/$(date --utc +%Y%m%dT%H%M%SZ).db"
find "${volume}/snapshots" -name '*.db' | sort | head -n -4 | xargs --no-run-if-empty rm

if test -d "${volume}/keys"; then exit 0; fi
rm -rf "${volume}/keys.part"
install -d -m 0700 "${volume}/keys.part/pki/etcd" "${volume}/keys.part/stockyard/api"
cp -p "$pki"/{ca,front-proxy-ca}.{crt,key} "$pki"/sa.{key,pub} "${volume}/keys.part/pki"
cp -p "$pki"/etcd/ca.{crt,key} "${volume}/keys.part/pki/etcd"
cp -p /etc/stockyard/{client.json,endpoint} "${volume}/keys.part/stockyard"
cp -p /etc/stockyard/api/encryption.yaml "${volume}/keys.part/stockyard/api"
if ! test -e /etc/stockyard/vault.json; then
    cp -p /var/lib/cloud/instance/user-data.txt "${volume}/keys.part"
fi
mv "${volume}/keys.part" "${volume}/keys"
