#!/usr/bin/env bash
# Installs p4-utils in the kit's environment, at the pinned commit.
# shellcheck source=vagrant/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

if [[ -d $KIT/.venv ]] && found=$(p4_utils_commit 2>/dev/null) && [[ $found == "$P4_UTILS_COMMIT" ]]; then exit 0; fi
# No dependencies: those it declares are P4Runtime's, in versions that no Python of this machine has. The kit uses
# its Mininet nodes and its Thrift API, whose needs (networkx, psutil, scapy) are in the kit's own lock file.
retry "$PYTHON" -m pip install -q --no-deps --no-build-isolation --force-reinstall \
    "git+$P4_UTILS_REPOSITORY@$P4_UTILS_COMMIT"
