#!/bin/bash
# profiles.sh: AppArmor's parser compiles each of the profiles that we ship, as it would to load them. What they do is tested by
# vm/apparmor.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v apparmor_parser >/dev/null || PATH=$PATH:/usr/sbin:/sbin
command -v apparmor_parser >/dev/null || { echo "profiles.sh: no apparmor_parser; hint: make setup" >&2; exit 1; }
compiled=$(mktemp)
trap 'rm -f "$compiled"' EXIT
features=/etc/apparmor.d/abi/3.0 # of a kernel that enforces all of it, whatever this one does
apparmor_parser --kernel-features="$features" --skip-kernel-load --skip-cache --warn=all --Werror --stdout deploy/apparmor/plimsoll >"$compiled"
for profile in plimsoll plimsoll-serve plimsoll-lease; do
  grep -aq "$profile" "$compiled" || { echo "profiles.sh: $profile is not compiled" >&2; exit 1; }
done
