#!/usr/bin/env bash
# Makes this machine the kit's: every step in order, then the check. Run it again whenever it stopped, or a pin changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

STEPS=(release prerequisites p4lang-repository p4lang-packages kit p4-utils bmv2-modules)

if [[ $(id -u) != 0 ]]; then
    echo "provisioning installs packages and needs root: sudo $PWD/provision.sh" >&2
    exit 2
fi
for step in "${STEPS[@]}"; do
    echo "== $step"
    if ! bash "steps/$step.sh"; then
        echo "provisioning stopped at step $step; its message is above. Then run again: vagrant provision" >&2
        exit 1
    fi
done
bash check.sh
