#!/bin/sh
# e2e.sh: the shipped binary against this kernel, in a guest of run.sh. Needs ./plimsoll beside it and CGROUP_VERSION.
# It checks what is written and what is restored, not how fast: the emulated CPU is no measure of time. Beside a file brief the
# scenarios are left out that ask no more of the kernel than the others; the kernel tests of cmd/plimsoll have them on the host.
cd "$(dirname "$0")" || exit 1
limit=20000 period=100000 # microseconds
root=/sys/fs/cgroup
[ "$CGROUP_VERSION" = v1 ] && hierarchies="$root/cpu $root/cpuacct" || hierarchies=$root
top=${hierarchies%% *}/lab
group=$top/a
. ./lib.sh

set_quota() { if [ "$CGROUP_VERSION" = v1 ]; then echo "$1" >"$group/cpu.cfs_quota_us"; else echo "$1 $period" >"$group/cpu.max"; fi; }

# make_group QUOTA: /lab/a with a limit and a process that wants a whole CPU.
make_group() {
  for h in $hierarchies; do
    mkdir -p "$h/lab"
    [ "$CGROUP_VERSION" = v1 ] || echo '+cpu +cpuset' >"$h/lab/cgroup.subtree_control"
    mkdir "$h/lab/a"
  done
  set_quota "$1"
  plimsoll-spin &
  spinner=$!
  for h in $hierarchies; do echo $spinner >"$h/lab/a/cgroup.procs"; done
}

remove_group() {
  kill -9 $spinner
  wait $spinner 2>/dev/null
  for h in $hierarchies; do within 5 rmdir "$h/lab/a" 2>/dev/null; done
}

# raise: an agent with policy auto has raised the quota. Like that of the shield it polls and serves nothing: an emulated CPU takes
# seconds to load the programs and to start the server, which have no part in that. refills_then_raises has both.
raise() {
  start_raising auto '/lab/*' --poll --listen ''
  raised 30 $limit
}

doctor() {
  ./plimsoll doctor --json >/tmp/out 2>&1 || fail "$(cat /tmp/out)" || return 1
  tr -d '\n' </tmp/out | grep -q '"cgroup-version",[^}]*"detail": "'"$CGROUP_VERSION" ||
    fail "doctor does not name cgroup $CGROUP_VERSION: $(cat /tmp/out)" || return 1
  echo "DOCTOR $(tr -d '\n' </tmp/out)" # for docs/KERNELS.md
}

plan_writes_nothing() {
  ./plimsoll plan --policy auto --include '/lab/*' >/tmp/out 2>&1 || fail "$(cat /tmp/out)" || return 1
  grep -q /lab/a /tmp/out || fail "plan does not name /lab/a: $(cat /tmp/out)" || return 1
  same "after plan"
}

kill_then_restore() {
  for _ in 1 2 3 4; do # the guard may have taken the raise back in this moment
    raise && stop KILL || return 1
    same "" >/dev/null || break
  done
  ! same "" >/dev/null || fail "nothing was left behind: the scenario proves nothing" || return 1
  ./plimsoll restore >>/tmp/agent.log 2>&1 || fail "restore failed" || return 1
  same "after restore" || return 1
  ./plimsoll restore >>/tmp/agent.log 2>&1 || fail "a second restore failed" || return 1
  same "after a second restore"
}

kill_then_start() {
  raise && stop KILL || return 1
  start --policy none --include '/lab/*'
  within 60 same "" >/dev/null || { same "after a new start"; return 1; }
  stop TERM && same "at the end"
}

# A spurt of the group is answered by refills where the kernel has a burst to rewrite; a demand that lasts raises the quota. The
# spinner begins when the agent is there, or the demand has lasted by then. A write that the kernel refuses is no resize
# (refused_write_is_no_resize).
refilled() { ./plimsoll status --json 2>/dev/null | grep -q '"refills": *[1-9]'; }
answers() { ./plimsoll status >/dev/null 2>&1; }
refills_then_raises() {
  kill -STOP $spinner
  start_raising cfsQuotaBurstOnly '/lab/*'
  within 30 answers || fail "the agent does not answer" || return 1
  kill -CONT $spinner
  within 30 quota_above $limit || fail "the quota is not above $limit: $(quota)" || return 1
  ! has_burst || within 5 refilled || fail "no refill" || return 1
  ! set_quota nonsense 2>/dev/null || fail "the kernel took nonsense" || return 1
  sleep 1
  stop TERM && same "after SIGTERM"
}

sigterm_restores() { raise && stop TERM && same "after SIGTERM"; }

none_is_passive() {
  start --policy none --include '/lab/*'
  within 30 answers || fail "the agent does not answer" || return 1
  sleep 3
  same "under policy none" && stop TERM && same "after policy none"
}

# The agent compares and writes, which are two system calls, and long ones on an emulated CPU: the foreign write comes
# when it has raised the quota as far as it will.
foreign_write_stays() {
  raise || return 1
  within 20 steady || fail "the quota does not become constant: $(quota)" || return 1
  set_quota 35000
  sleep 3
  quota_is 35000 || fail "a foreign 35000 became $(quota)" || return 1
  stop TERM || return 1
  quota_is 35000 || fail "at stop a foreign 35000 became $(quota)" || return 1
  burst_clear || fail "at stop the burst stays $(burst)"
}

# A shell opens the file with O_TRUNC, which inotify reports as a modification (fs/open.c, do_truncate) before anything is
# written, and also when the write is then refused: it is no new limit.
refused_write_is_no_resize() {
  raise || return 1
  ! set_quota nonsense 2>/dev/null || fail "the kernel took nonsense" || return 1
  sleep 2
  stop TERM && same "after a write that the kernel refused"
}

recreated_group_is_another() {
  raise && stop KILL || return 1
  remove_group
  make_group 30000
  files >/tmp/before
  ./plimsoll restore >>/tmp/agent.log 2>&1 || fail "restore failed" || return 1
  same "after restore beside a recreated group"
}

# the demo's own groups, service and agent, on this kernel's kind of control groups
demo_leaves_nothing() {
  busybox ifconfig lo 127.0.0.1 up
  ./plimsoll demo --seconds 3 --modes none,auto --json >/tmp/out 2>/tmp/err || fail "$(cat /tmp/err)" || return 1
  grep -q '"name": *"auto"' /tmp/out || fail "no mode auto: $(cat /tmp/out)" || return 1
  [ -z "$(find $root -name 'plimsoll*')" ] || fail "left behind: $(find $root -name 'plimsoll*')"
}

# shield: v1, where the whole machine's tasks are moved and come back. A task that was in the root and lives is there
# again; it may end during the search for it.
set=$root/cpuset shield=$root/cpuset/plimsoll-shield
shielded() { grep -qx 1 "$shield/tasks" 2>/dev/null && [ "$(cat "$shield/cpuset.cpus")" != "$(cat "$set/cpuset.cpus")" ]; }
unshielded() {
  [ ! -e "$shield" ] || fail "$shield is there $1" || return 1
  for t in $(cat /tmp/root); do
    [ ! -e "/proc/$t" ] || grep -qx "$t" "$set/tasks" || [ ! -e "/proc/$t" ] || fail "task $t ($(cat "/proc/$t/comm")) is not in the root $1" || return 1
  done
}
shield_is_undone() {
  [ "$CGROUP_VERSION" = v1 ] || return 0
  [ -e "$set/tasks" ] || fail "there is no cpuset hierarchy at $set" || return 1
  for g in lab lab/a; do
    mkdir -p "$set/$g"
    for f in cpuset.mems cpuset.cpus; do cat "$set/$f" >"$set/$g/$f"; done
  done
  echo $spinner >"$set/lab/a/cgroup.procs"
  cat "$set/tasks" >/tmp/root
  echo '{reserve: {policy: cpuset, shield: true}, overrides: [{cgroup: /lab/a, exclusive: strict, request: 1}]}' >/tmp/shield.yaml
  for end in restore TERM; do
    start --config /tmp/shield.yaml --poll --listen ''
    within 30 shielded || fail "no shield: $(cat "$shield/tasks" "$shield/cpuset.cpus" 2>&1 | tail -n 3)" || return 1
    echo "  $(wc -l <"$shield/tasks") tasks are in the shield, $(wc -l <"$set/tasks") in the root"
    if [ $end = restore ]; then
      stop KILL || return 1
      ./plimsoll status 2>&1 | grep -q 'plimsoll-shield: .* although no agent runs' || fail "status does not show the shield" || return 1
      ./plimsoll restore >>/tmp/agent.log 2>&1 || fail "restore failed" || return 1
    else
      stop TERM || return 1
    fi
    unshielded "after $end" && same "after $end" || return 1
  done
  echo $spinner >"$set/tasks"
  rmdir "$set/lab/a" "$set/lab"
}

setup() { make_group $limit; }
teardown() { remove_group; }
names="doctor kill_then_restore refills_then_raises shield_is_undone"
[ -e brief ] || names="$names refused_write_is_no_resize plan_writes_nothing kill_then_start sigterm_restores none_is_passive foreign_write_stays recreated_group_is_another
  demo_leaves_nothing"
for name in $names; do scenario "$name"; done
exit $failed
