#!/bin/sh
# systemd-scx.sh: sched_ext beside a real systemd, in a guest of ../systemd.sh, with what the shipped units allow: a
# scheduler that is loaded at boot, replaced and taken out, and the agent's own.
cd "$(dirname "$0")" || exit 1
group=/sys/fs/cgroup/system.slice
CGROUP_VERSION=v2
. ./lib.sh
state() { cat /sys/kernel/sched_ext/state; }
ops() { cat /sys/kernel/sched_ext/root/ops 2>/dev/null; }
ops_is() { [ "$(ops)" = "$1" ]; }
shows() { plimsoll status --json | tr -d ' \n' | grep -q "\"scheduler\":{$1"; }
off() { [ "$(state)" = disabled ]; }

install -m 755 plimsoll /usr/local/bin/plimsoll
install -D -m 644 fifo_bpfel.o /etc/plimsoll/one.bpf.o
install -m 644 plimsoll.service plimsoll-sched@.service /etc/systemd/system/
install -D -m 644 plimsoll.sysusers /usr/lib/sysusers.d/plimsoll.conf
systemd-sysusers || exit 1
systemctl daemon-reload

# Enabled for the next boot, in force now, replaced by a reload, kept when the new one is refused, and gone with the unit.
at_boot() {
  systemctl enable -q --now plimsoll-sched@one || return 1
  systemctl is-enabled -q plimsoll-sched@one || fail "not enabled" || return 1
  within 60 ops_is fifo || fail "the state is $(state) $(ops)" || return 1
  seq=$(cat /sys/kernel/sched_ext/enable_seq)
  systemctl reload plimsoll-sched@one || fail "no reload" || return 1
  ops_is fifo && [ "$(cat /sys/kernel/sched_ext/enable_seq)" -gt "$seq" ] || fail "not loaded anew: $(ops)" || return 1
  cp refuse_bpfel.o /etc/plimsoll/one.bpf.o
  ! systemctl reload plimsoll-sched@one 2>/dev/null || fail "a scheduler that refuses was taken" || return 1
  ops_is fifo || fail "the old one is not back: $(state) $(ops)" || return 1
  systemctl disable -q --now plimsoll-sched@one || return 1
  within 20 off || fail "the state is $(state) $(ops)"
}

# The agent's own unit may load the scheduler of mechanism schedExt, with the floor and the watchdog of its configuration.
agent_loads() {
  systemd-run -q --unit batch sh -c 'while :; do :; done' || return 1
  cat >/etc/plimsoll/config.yaml <<'C'
experimental: true
colocation: {enable: true, mechanism: schedExt, schedExt: {floorPercent: 1, watchdogSeconds: 10}}
overrides:
  - {cgroup: /system.slice/batch.service, class: BE}
C
  systemctl start plimsoll || return 1
  within 120 ops_is plimsoll || { plimsoll status; fail "the state is $(state) $(ops)"; } || return 1
  within 60 shows '"in_force":true.*"floor_percent":1,"watchdog_seconds":10' || { plimsoll status --json; fail "the status differs"; } || return 1
  systemctl stop plimsoll batch
  within 20 off || fail "the state is $(state) $(ops)"
}

setup() { :; }
teardown() {
  [ $result = ok ] || journalctl -b -u plimsoll.service -u plimsoll-sched@one.service -o cat --no-pager -n 30 | sed 's/^/  unit: /'
  systemctl stop plimsoll plimsoll-sched@one batch 2>/dev/null
}
for name in at_boot agent_loads; do scenario $name; done
exit $failed
