#!/usr/bin/env bash
# Lets the kit's environment import the Python modules that p4lang-bmv2 brings (bm_runtime, sswitch_runtime).
# shellcheck source=vagrant/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

import="import bm_runtime.standard.Standard, bmpy_utils, sswitch_runtime.SimpleSwitch"
if "$PYTHON" -c "$import" 2>/dev/null; then exit 0; fi

# Where they are depends on how the package was built: dist-packages, or a site-packages that no interpreter of
# Ubuntu's looks into. dpkg knows.
module=$(dpkg -L p4lang-bmv2 | awk '/\/bm_runtime\/__init__\.py$/ { found = $0 } END { print found }')
[[ -n $module ]] || die "p4lang-bmv2 has no bm_runtime/__init__.py: it was built without Thrift, which the kit needs"
site=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
dirname "$(dirname "$module")" >"$site/p4lang-bmv2.pth"
"$PYTHON" -c "$import"
