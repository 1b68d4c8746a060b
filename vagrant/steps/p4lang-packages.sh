#!/usr/bin/env bash
# Installs BMv2 and p4c as p4lang packages them.
# shellcheck source=vagrant/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

install_packages "p4lang-bmv2=$BMV2_VERSION" "p4lang-p4c=$P4C_VERSION"
