#!/usr/bin/env bash
# Refuses a machine other than the pinned Ubuntu: p4lang's packages fit one release only.
# shellcheck source=vagrant/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

found="$(os_release ID) $(os_release VERSION_ID)"
if [[ $found != "ubuntu $UBUNTU_RELEASE" ]]; then
    die "this is $found, not ubuntu $UBUNTU_RELEASE. Use the Vagrantfile's machine, or change UBUNTU_RELEASE in versions.env"
fi
