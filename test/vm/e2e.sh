#!/bin/sh
# e2e.sh: the shipped binary against this kernel, in a guest of run.sh. Needs ./plimsoll beside it and CGROUP_VERSION.
# It checks what is written and what is restored, not how fast: the emulated CPU is no measure of time.
cd "$(dirname "$0")" || exit 1
limit=20000 period=100000 # microseconds
root=/sys/fs/cgroup
[ "$CGROUP_VERSION" = v1 ] && hierarchies="$root/cpu $root/cpuacct" || hierarchies=$root
top=${hierarchies%% *}/lab
group=$top/a
agent= spinner= failed=0

has_burst() { [ -e "$group/cpu.max.burst" ] || [ -e "$group/cpu.cfs_burst_us" ]; }
quota() { if [ "$CGROUP_VERSION" = v1 ]; then cat "$group/cpu.cfs_quota_us"; else cut -d' ' -f1 "$group/cpu.max"; fi; }
burst() { if [ "$CGROUP_VERSION" = v1 ]; then cat "$group/cpu.cfs_burst_us"; else cat "$group/cpu.max.burst"; fi; }
set_quota() { if [ "$CGROUP_VERSION" = v1 ]; then echo "$1" >"$group/cpu.cfs_quota_us"; else echo "$1 $period" >"$group/cpu.max"; fi; }
plimsoll() { ./plimsoll --state-dir /run/plimsoll "$@"; }
now() { cut -d. -f1 /proc/uptime; }
gone() { ! kill -0 "$1" 2>/dev/null; }
raised() { [ "$(quota)" -gt $limit ]; }
burst_set() { ! has_burst || [ "$(burst)" -gt 0 ]; }

# within SECONDS COMMAND...: whether the command comes true in time.
within() {
  deadline=$(($(now) + $1))
  shift
  until "$@"; do
    [ "$(now)" -lt $deadline ] || return 1
    sleep 0.1
  done
}

# make_group QUOTA: /lab/a with a limit and a process that wants a whole CPU.
make_group() {
  for h in $hierarchies; do
    mkdir -p "$h/lab"
    [ "$CGROUP_VERSION" = v1 ] || echo '+cpu +cpuset' >"$h/lab/cgroup.subtree_control"
    mkdir "$h/lab/a"
  done
  set_quota "$1"
  sh -c 'while :; do :; done' &
  spinner=$!
  for h in $hierarchies; do echo $spinner >"$h/lab/a/cgroup.procs"; done
}

remove_group() {
  kill -9 $spinner
  wait $spinner 2>/dev/null
  for h in $hierarchies; do within 5 rmdir "$h/lab/a" 2>/dev/null; done
}

# files: name and text of every setting of the group (what can be read and written, without counters).
files() {
  for f in $(find "$group" -maxdepth 1 -type f -perm -600 | sort); do
    case $f in *.pressure | *.peak | *cpuacct.usage) ;; *) echo "$f: $(cat "$f" 2>&1)" ;; esac
  done
}

# same WHEN: whether the group's files are as they were when the scenario began.
same() {
  files >/tmp/after
  cmp -s /tmp/before /tmp/after && return 0
  echo "  files differ $1:"
  diff /tmp/before /tmp/after | sed 's/^/  /'
  return 1
}

# start FLAG...: an agent in the background. Not by the function above, for $! would be a shell around it.
start() {
  ./plimsoll --state-dir /run/plimsoll run --include '/lab/*' --listen 127.0.0.1:0 "$@" >>/tmp/agent.log 2>&1 &
  agent=$!
}

# started_and_raised: an agent with policy auto has set what this kernel has.
started_and_raised() {
  start --policy auto
  within 30 burst_set || { echo "  no burst was set"; return 1; }
  within 30 raised || { echo "  the quota was not raised: $(quota)"; return 1; }
}

stop() {
  kill "-$1" $agent
  within 20 gone $agent || { echo "  the agent does not end on SIG$1"; return 1; }
  wait $agent
  code=$?
  agent=
  [ "$1" = KILL ] || [ $code -eq 0 ] || { echo "  the agent exits with $code"; return 1; }
}

doctor() {
  plimsoll doctor >/tmp/out 2>&1 || { cat /tmp/out; return 1; }
  grep -qi "cgroup.*$CGROUP_VERSION" /tmp/out || { cat /tmp/out; echo "  doctor does not name cgroup $CGROUP_VERSION"; return 1; }
  plimsoll doctor --json >/tmp/out 2>&1 || { cat /tmp/out; return 1; }
}

plan_writes_nothing() {
  plimsoll plan --policy auto --include '/lab/*' >/tmp/out 2>&1 || { cat /tmp/out; return 1; }
  grep -q /lab/a /tmp/out || { cat /tmp/out; echo "  plan does not name /lab/a"; return 1; }
  same "after plan"
}

kill_then_restore() {
  started_and_raised && stop KILL || return 1
  same "(expected) after kill -9" >/dev/null && { echo "  nothing was left behind: the scenario proves nothing"; return 1; }
  plimsoll restore >>/tmp/agent.log 2>&1 || { echo "  restore failed"; return 1; }
  same "after restore" || return 1
  plimsoll restore >>/tmp/agent.log 2>&1 || { echo "  a second restore failed"; return 1; }
  same "after a second restore"
}

kill_then_start() {
  started_and_raised && stop KILL || return 1
  start --policy none
  within 20 same "" >/dev/null || { same "after a new start"; return 1; }
  stop TERM && same "at the end"
}

sigterm_restores() { started_and_raised && stop TERM && same "after SIGTERM"; }

none_is_passive() {
  start --policy none
  sleep 3
  same "under policy none" && stop TERM && same "after policy none"
}

foreign_write_stays() {
  started_and_raised || return 1
  set_quota 35000
  sleep 3
  [ "$(quota)" = 35000 ] || { echo "  a foreign 35000 became $(quota)"; return 1; }
  stop TERM || return 1
  [ "$(quota)" = 35000 ] || { echo "  at stop a foreign 35000 became $(quota)"; return 1; }
  ! has_burst || [ "$(burst)" = 0 ] || { echo "  at stop the burst stays $(burst)"; return 1; }
}

recreated_group_is_another() {
  started_and_raised && stop KILL || return 1
  remove_group
  make_group 30000
  files >/tmp/before
  plimsoll restore >>/tmp/agent.log 2>&1 || { echo "  restore failed"; return 1; }
  same "after restore beside a recreated group"
}

for scenario in doctor plan_writes_nothing kill_then_restore kill_then_start sigterm_restores none_is_passive \
  foreign_write_stays recreated_group_is_another; do
  rm -rf /run/plimsoll
  : >/tmp/agent.log
  make_group $limit
  files >/tmp/before
  begin=$(now)
  if $scenario; then result=ok; else result=FAIL failed=1; fi
  echo "$result e2e/$scenario $(($(now) - begin))s"
  [ $result = ok ] || sed 's/^/  agent: /' /tmp/agent.log
  [ -z "$agent" ] || { kill -9 "$agent" 2>/dev/null; agent=; }
  remove_group
done
exit $failed
