#!/usr/bin/env bash
# Stands in for every command that provisioning runs on a machine; the name it is called by says for which.
# $FAKE_STATE: calls (one a line), packages/ (installed versions), site-packages. A call that contains $FAKE_FAILURE fails.
set -euo pipefail

name=$(basename "$0")
echo "$name $*" >>"$FAKE_STATE/calls"
if [[ -n ${FAKE_FAILURE:-} && "$name $*" == *"$FAKE_FAILURE"* ]]; then
    echo "E: no such luck" >&2
    exit 100
fi

# A package's version in the fake archive: the pattern asked for, with its * made a number.
install_package() {
    local version=1
    if [[ $1 == *=* ]]; then version=${1#*=}; fi
    echo "${version//\*/7}" >"$FAKE_STATE/packages/${1%%=*}"
}

fake_apt_get() {
    local argument installing=
    for argument in "$@"; do
        if [[ -n $installing && $argument != -* ]]; then install_package "$argument"; fi
        if [[ $argument == install ]]; then installing=yes; fi
    done
}

fake_dpkg_query() {
    local package=$FAKE_STATE/packages/${*: -1}
    [[ -f $package ]] || return 1
    echo "installed $(<"$package")"
}

fake_curl() {
    while [[ $1 != -o ]]; do shift; done
    echo "a signing key" >"$2"
}

fake_system_python() { # python3.11 -m venv --system-site-packages FOLDER
    local folder=${*: -1}
    mkdir -p "$folder/bin"
    cp "$0" "$folder/bin/python"
    cp "$0" "$folder/bin/pip"
}

fake_python() {
    case "$*" in
        *"pip install"*) argument=${*: -1}; echo "${argument##*@}" >"$FAKE_STATE/p4-utils" ;;
        -) cat "$FAKE_STATE/p4-utils" ;; # the commit of p4-utils
        *sysconfig*) echo "$FAKE_STATE/site-packages" ;;
        *platform*) echo "${FAKE_PYTHON_VERSION:-3.11.9}" ;;
        *bm_runtime* | *sswitch_runtime*) [[ -f $FAKE_STATE/site-packages/p4lang-bmv2.pth ]] ;;
    esac
}

case $name in
    apt-get) fake_apt_get "$@" ;;
    dpkg-query) fake_dpkg_query "$@" ;;
    dpkg) printf '%s\n' /usr/bin/simple_switch /usr/lib/python3.10/site-packages/bm_runtime/__init__.py ;;
    curl) fake_curl "$@" ;;
    id) echo "${FAKE_USER_ID:-0}" ;;
    make | sleep) ;;
    python) fake_python "$@" ;;
    python3*) fake_system_python "$@" ;;
    simple_switch) echo "$(<"$FAKE_STATE/packages/p4lang-bmv2")-693e69e6" ;;
    p4c-bm2-ss) printf '%s\n' p4c-bm2-ss "Version $(<"$FAKE_STATE/packages/p4lang-p4c") (SHA: b9775ee382 BUILD: Release)" ;;
    *) exit 127 ;;
esac
