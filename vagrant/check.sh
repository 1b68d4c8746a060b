#!/usr/bin/env bash
# Prints every component with the version found and the one expected; exits 1 where one differs.
# shellcheck source=vagrant/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

wrong=0

# $1: component, $2: what was found, nothing where it is missing, $3: the pattern expected.
report() {
    local verdict=ok
    if ! matches "$2" "$3"; then
        verdict=WRONG
        wrong=$((wrong + 1))
    fi
    printf '%-34s %-42s %-42s %s\n' "$1" "${2:-missing}" "$3" "$verdict"
}

# Prints the first version number that a program names; nothing where it does not run, as with a library missing.
program_version() {
    local said
    if said=$("$1" --version 2>&1) && [[ $said =~ [0-9]+(\.[0-9]+)+ ]]; then echo "${BASH_REMATCH[0]}"; fi
}

# "imports" where the kit's environment can import the module.
importable() {
    if "$PYTHON" -c "import $1" 2>/dev/null; then echo imports; fi
}

python_version() {
    if [[ -x $PYTHON ]]; then "$PYTHON" -c 'import platform; print(platform.python_version())'; fi
}

printf '%-34s %-42s %-42s %s\n' component found expected verdict
report ubuntu "$(os_release VERSION_ID)" "$UBUNTU_RELEASE"
report mininet "$(package_version mininet)" "$MININET_VERSION"
report p4lang-bmv2 "$(package_version p4lang-bmv2)" "$BMV2_VERSION"
report p4lang-p4c "$(package_version p4lang-p4c)" "$P4C_VERSION"
report simple_switch "$(program_version simple_switch)" "$BMV2_VERSION"
report p4c-bm2-ss "$(program_version p4c-bm2-ss)" "$P4C_VERSION"
report python "$(python_version)" "$PYTHON_VERSION.*"
report p4-utils "$(p4_utils_commit 2>/dev/null || echo missing)" "$P4_UTILS_COMMIT"
for module in mininet.net bm_runtime.standard sswitch_runtime p4utils.mininetlib.node \
    p4utils.utils.sswitch_thrift_API inakit.experiments.cli; do
    report "$module" "$(importable "$module")" imports
done

if ((wrong)); then
    die "$wrong of the components above are not the expected ones. Run vagrant provision; if it stays, see versions.env"
fi
