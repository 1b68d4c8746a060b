#!/usr/bin/env bash
# Tells apt of p4lang's repository, trusted with its own key and for nothing else.
# shellcheck source=vagrant/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

repository=$P4LANG_REPOSITORY/xUbuntu_$UBUNTU_RELEASE
key=$ETC/apt/keyrings/p4lang.asc
list=$ETC/apt/sources.list.d/p4lang.list

# Fetched every time: the build service's keys expire every other year and are replaced under the same address.
mkdir -p "$(dirname "$key")" "$(dirname "$list")"
if ! (retry curl -fsSL --max-time 60 -o "$key.new" "$repository/Release.key"); then
    die "no signing key at $repository. Does p4lang publish for ubuntu $UBUNTU_RELEASE? See versions.env"
fi
mv "$key.new" "$key"
echo "deb [signed-by=$key] $repository/ /" >"$list"
