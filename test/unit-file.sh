#!/bin/bash
# unit-file.sh: systemd-analyze verify of the units that we ship. It requires the programs of ExecStart= to exist, so the
# units are checked in a root of their own that has them; of a template, an instance.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v systemd-analyze >/dev/null || { echo "unit-file.sh: no systemd-analyze; hint: make setup" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/usr/local/bin" "$root/etc/systemd/system" "$root/etc/plimsoll" "$root/usr/lib/systemd"
cp -r /usr/lib/systemd/system "$root/usr/lib/systemd/" # the targets that the unit names
for program in usr/local/bin/plimsoll bin/sh; do install -m 755 /bin/true "$root/$program"; done
cp deploy/systemd/*.service "$root/etc/systemd/system/"
for unit in plimsoll.service plimsoll-serve.service plimsoll-sched@name.service; do
  out=$(systemd-analyze verify --root="$root" "$unit" 2>&1) && [ -z "$out" ] || {
    echo "deploy/systemd: $unit:" >&2
    echo "$out" >&2
    exit 1
  }
done
# A plain restore would hold an agent that has taken over from the stopped one. An agent that hangs is killed in time for that, and
# only SIGKILL ends one that is stopped. All agents of a machine share the folder of the lock.
for line in 'ExecStopPost=/usr/local/bin/plimsoll restore --unless-running' Type=notify WatchdogSec=6 WatchdogSignal=SIGKILL \
  'RuntimeDirectory=plimsoll plimsoll-lock'; do
  grep -qxF "$line" deploy/systemd/plimsoll.service || {
    echo "deploy/systemd: plimsoll.service: there is to be a line $line" >&2
    exit 1
  }
done
