#!/usr/bin/env bash
# Installs what the node takes from the distribution: runc, the CNI plugins, iptables and conntrack. Needs root and apt.
set -euo pipefail
packages=(runc containernetworking-plugins conntrack iptables iproute2 openssl)
missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
apt-get update --quiet=2
DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends "${missing[@]}"
