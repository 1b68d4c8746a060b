# What every provisioning step starts with: strict mode, the pins, bounded retries, failures that name the step.
# shellcheck shell=bash
set -Eeuo pipefail

VAGRANT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
KIT=$(dirname "$VAGRANT")
PYTHON=$KIT/.venv/bin/python
STEP=$(basename "$0" .sh)
ETC=${ETC:-/etc} # the tests have their own
ATTEMPTS=3
RETRY_PAUSE_S=10

# shellcheck source=vagrant/versions.env
source "$VAGRANT/versions.env"

# $1: exit status, $2: line, $3: command.
report_failure() {
    echo "step $STEP failed with status $1 at line $2: $3" >&2
}
trap 'report_failure $? $LINENO "$BASH_COMMAND"' ERR

# Ends the step with a message that says what was expected and the way out.
die() {
    echo "step $STEP: $*" >&2
    exit 1
}

# Runs a command that needs the network, at most $ATTEMPTS times; then the step ends.
retry() {
    local attempt
    for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
        if "$@"; then return 0; fi
        echo "step $STEP: attempt $attempt of $ATTEMPTS failed: $*" >&2
        if ((attempt < ATTEMPTS)); then sleep "$RETRY_PAUSE_S"; fi
    done
    die "gave up on: $*"
}

# Whether a version is one that a pattern of versions.env allows.
matches() {
    # shellcheck disable=SC2053 # the right-hand side is a pattern
    [[ $1 == $2 ]]
}

# Prints the version of an installed package, and nothing where it is not installed.
package_version() {
    local state
    if ! state=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$1" 2>/dev/null); then return 0; fi
    if [[ $state == "installed "* ]]; then echo "${state#installed }"; fi
}

# Installs the packages that are missing; an argument is a name, or a name=pattern.
install_packages() {
    local wanted pattern missing=()
    for wanted in "$@"; do
        pattern="?*"
        if [[ $wanted == *=* ]]; then pattern=${wanted#*=}; fi
        matches "$(package_version "${wanted%%=*}")" "$pattern" || missing+=("$wanted")
    done
    if ((${#missing[@]} == 0)); then return 0; fi
    # Any list that cannot be fetched or verified is an error here; by itself apt-get would go on with an old one.
    # A new machine upgrades itself in the background, and that holds apt's lock for minutes.
    retry apt-get -q -o APT::Update::Error-Mode=any update
    DEBIAN_FRONTEND=noninteractive retry apt-get -qy -o DPkg::Lock::Timeout=600 \
        install --no-install-recommends "${missing[@]}"
}

# Prints a field of the machine's os-release.
os_release() {
    # shellcheck source=/dev/null
    (source "$ETC/os-release" && echo "${!1}")
}

# Prints the commit that p4-utils was installed from; fails where it was not installed from one.
p4_utils_commit() {
    "$PYTHON" - <<'PYTHON'
import importlib.metadata, json

source = importlib.metadata.distribution("p4utils").read_text("direct_url.json")
print(json.loads(source or "{}")["vcs_info"]["commit_id"])
PYTHON
}
