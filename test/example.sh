#!/bin/bash
# example.sh [-write]: prints a worked example, from the first look to the end: a group with a limit and a bounded load, and the
# output of each command. -write puts it into docs/EXAMPLE.md, and all but the output of doctor into README.md. It takes half a
# minute, needs root and `make build`, and removes its group. The printed commands leave out the state directory, which is
# temporary.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/bin/plimsoll
dir=$(mktemp -d)
root=/sys/fs/cgroup
if [ -e $root/cgroup.controllers ]; then group=$root/lab/example; else group=$root/cpu/lab/example; fi
agent=
load=
made=$([ -d "${group%/*}" ] && echo || echo "${group%/*}")
cleanup() {
  [ -z "$agent" ] || { kill "$agent" 2>/dev/null && wait "$agent"; } || true
  [ -z "$load" ] || { kill "$load" 2>/dev/null && wait "$load"; } || true
  sleep 0.5
  rmdir "$group" 2>/dev/null || true
  [ -z "$made" ] || rmdir "$made" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

mkdir -p "$group"
if [ -e $root/cgroup.controllers ]; then
  echo +cpu >$root/cgroup.subtree_control
  echo +cpu >"${group%/*}/cgroup.subtree_control"
  echo "50000 100000" >"$group/cpu.max"
else
  echo 50000 >"$group/cpu.cfs_quota_us"
fi
# At most a minute of load: 70 ms of work at a time, then a rest of 230 ms.
(
  echo $BASHPID >"$group/cgroup.procs"
  end=$((SECONDS + 60))
  while [ $SECONDS -lt $end ]; do
    until=$((${EPOCHREALTIME/./} + 70000))
    while [ "${EPOCHREALTIME/./}" -lt $until ]; do :; done
    sleep 0.23
  done
) &
load=$!

# say WORDS...: the command as a person types it, and what it prints.
say() {
  local words=" $*"
  echo "\$ plimsoll${words//\/lab\/\*/\'/lab/*\'}"
  "$bin" --state-dir "$dir" "$@" || echo "(exit code $?)"
  echo
}

example() {
  say doctor
  say plan --policy auto --include '/lab/*'
  echo "\$ plimsoll run --policy auto --include '/lab/*' --listen '' &"
  "$bin" --state-dir "$dir" run --policy auto --include '/lab/*' --listen '' 2>&1 &
  agent=$!
  sleep 12
  kill -0 "$agent" 2>/dev/null || { echo "example.sh: the agent has ended; hint: another one may run here" >&2; return 1; }
  echo
  say status
  say report
  say restore
  say resume
  echo '$ kill %1; wait'
  kill "$agent"
  wait "$agent" || true
  agent=
}

if [ "${1:-}" != -write ]; then
  example
  exit
fi
example >"$dir/said"
# Where the record is without --state-dir, and what the commands' advice is then.
sed -Ez "s|$dir/record|/var/lib/plimsoll|g; s|[ \n]+--state-dir[ \n]+$dir||g" "$dir/said" >"$dir/out"
{
  cat <<'TEXT'
# An example: from the first look to the end

A group `/lab/example` has a limit of half a CPU and works for 70 ms at a time. `bash test/example.sh -write` (root)
printed all of the following, on the machine that `doctor` describes.

```
TEXT
  cat "$dir/out"
  echo '```'
} >docs/EXAMPLE.md

# README.md has all but what doctor prints, between two marks.
{
  sed '/^<!-- example: begin -->$/q' README.md
  echo '```'
  sed -n '/^\$ plimsoll plan/,$p' "$dir/out"
  echo '```'
  sed -n '/^<!-- example: end -->$/,$p' README.md
} >"$dir/readme"
cat "$dir/readme" >README.md
