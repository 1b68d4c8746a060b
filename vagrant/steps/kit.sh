#!/usr/bin/env bash
# Sets the kit up in its virtual environment, on the pinned Python.
# shellcheck source=vagrant/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

# `make setup` keeps an environment that is there; it would make one with the system's own python3.
[[ -x $KIT/.venv/bin/pip ]] || "python$PYTHON_VERSION" -m venv --system-site-packages "$KIT/.venv"
retry make -C "$KIT" setup
