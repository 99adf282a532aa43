#!/bin/bash
# unit-file.sh: systemd-analyze verify of the unit that we ship. It wants the programs of ExecStart= to exist, so the
# unit is checked in a root of its own that has them.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v systemd-analyze >/dev/null || { echo "unit-file.sh: no systemd-analyze; hint: make setup" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/usr/local/bin" "$root/etc/systemd/system" "$root/etc/plimsoll" "$root/usr/lib/systemd"
cp -r /usr/lib/systemd/system "$root/usr/lib/systemd/" # the targets that the unit names
install -m 755 /bin/true "$root/usr/local/bin/plimsoll"
cp deploy/systemd/plimsoll.service "$root/etc/systemd/system/"
out=$(systemd-analyze verify --root="$root" plimsoll.service 2>&1) && [ -z "$out" ] || {
  echo "deploy/systemd/plimsoll.service:" >&2
  echo "$out" >&2
  exit 1
}
