#!/usr/bin/env bash
# Installs what the later steps call, and Mininet in its pinned version before `make setup` takes any.
# shellcheck source=vagrant/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

install_packages ca-certificates curl git make "mininet=$MININET_VERSION" \
    "python$PYTHON_VERSION" "python$PYTHON_VERSION-venv"
