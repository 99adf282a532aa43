#!/bin/sh
# systemd.sh: the shipped binary beside a real systemd, in a guest of ../systemd.sh. A service with CPUQuota=20% is
# watched by an agent while systemd writes the same files: daemon-reload, set-property, and the shipped unit file.
cd "$(dirname "$0")" || exit 1
slice=/system.slice/burner.service
group=/sys/fs/cgroup$slice
CGROUP_VERSION=v2
. ./lib.sh

# raise: an agent with policy auto has set burst and quota.
raise() {
  start_raising auto $slice
  raised 60 20000
}

# set_property VALUE: systemd's answer and what it did, for the record: its exit code is 0 when the kernel refused.
set_property() {
  asked=$(date +%s)
  systemctl set-property burner.service "CPUQuota=$1" || return 1
  echo "  set-property CPUQuota=$1: cpu.max '$(cat $group/cpu.max)', burst $(burst)"
  journalctl -u burner.service --since "@$asked" -o cat --no-pager -q | grep 'Failed to set' | sed 's/^/  systemd: /'
}

# A daemon-reload writes the declared value over ours. That is the owner's reset, not a foreign write: the agent raises it
# again. First with the agent stopped, so that the reset is sure to be seen; then with the agent running.
reload_is_met() {
  raise || return 1
  kill -STOP $agent
  systemctl daemon-reload
  quota_is 20000 || fail "systemd did not reset the quota: $(quota)" || return 1
  kill -CONT $agent
  within 90 quota_above 20000 || fail "the quota stays at $(quota) after a daemon-reload" || return 1
  systemctl daemon-reload
  sleep 1
  systemctl daemon-reload
  within 90 quota_above 20000 || fail "the quota stays at $(quota) after three daemon-reloads" || return 1
  ./plimsoll status >/tmp/out 2>&1
  ! grep -i -e foreign -e "another program" /tmp/out || fail "the reset counts as a foreign write" || return 1
  stop TERM && same "after the end"
}

# A larger limit is accepted by the kernel while our burst stands: it is the new limit, and what is restored.
larger_limit_is_adopted() {
  raise || return 1
  set_property 40% || return 1
  within 90 quota_above 40000 || fail "the quota is not raised above the new limit: $(quota)" || return 1
  stop TERM || return 1
  quota_is 40000 || fail "at the end the quota is $(quota), not the new limit 40000" || return 1
  burst_clear || fail "at the end the burst is $(burst)"
}

# A limit below our burst is refused by the kernel (EINVAL), and systemd only logs that. After a release it works.
smaller_limit_after_release() {
  raise || return 1
  set_property 10% || return 1
  quota_is 10000 && echo "  the kernel took the smaller limit beside our burst"
  ./plimsoll release $slice --for 30s || fail "release failed" || return 1
  set_property 10% || return 1
  within 10 quota_is 10000 || fail "after a release the quota is $(quota), not 10000" || return 1
  sleep 3
  quota_is 10000 || fail "released for 30 s, but the quota is $(quota) after 3 s" || return 1
  stop TERM || return 1
  quota_is 10000 || fail "at the end the quota is $(quota), not the new limit 10000" || return 1
  burst_clear || fail "at the end the burst is $(burst)"
}

# refills: how many there were. The service is the only group with any.
refills() { ./plimsoll status | sed -n 's/.* \([0-9]*\) refills.*/\1/p' | grep . || echo 0; }

# looked_after REFILLS: whether throttles of the service are met, with a raise, or with more refills than there were.
looked_after() { quota_above 20000 || [ "$(refills)" -gt "$1" ]; }

# A restart of the service makes another cgroup of the same name, with a limit of its own: nothing of ours is in it at the end.
restarted_service() {
  raise || return 1
  systemctl stop burner.service
  before=$(refills)
  systemctl start burner.service
  within 60 looked_after "$before" || fail "the restarted service is not looked after" || return 1
  stop TERM && quota_is 20000 || fail "at the end the quota is $(quota)" || return 1
  burst_clear || fail "at the end the burst is $(burst)"
}

# A pod as the kubelet's systemd driver and runc make it on v2: a slice with a limit below slices of classes, and in it a
# scope with a limit (pkg/kubelet/cm, CgroupName.ToSystemd; runc, libcontainer/cgroups/systemd). It is known by its names
# alone, both levels get a burst, daemon-reload leaves it, and nothing is left at the end.
pod_of_the_systemd_driver() {
  pod=kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice
  scope=cri-containerd-$(printf '%064d' 7).scope
  systemd-run --quiet --scope --slice=$pod --unit="$scope" -p CPUQuota=20% sh -c 'while :; do :; done' 2>/dev/null &
  group=/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/$pod
  within 10 test -e "$group/$scope/cpu.max" || fail "no $group/$scope" || return 1
  systemctl set-property --runtime $pod CPUQuota=20%
  within 10 quota_is 20000 || fail "the pod's quota is $(quota)" || return 1
  files >/tmp/before
  start --policy cpuBurstOnly
  within 60 burst_set || fail "the pod has no burst" || return 1
  group=$group/$scope
  within 60 burst_set || fail "the container has no burst" || return 1
  ./plimsoll status >/tmp/out 2>&1
  grep -q "its pod: burst" /tmp/out || fail "status does not show the pod: $(cat /tmp/out)" || return 1
  grep -q 'name="pod 11111111-2222-' /tmp/agent.log || fail "the log does not name the pod" || return 1
  systemctl daemon-reload
  sleep 1
  burst_set || fail "daemon-reload takes the burst away" || return 1
  group=$(dirname "$group")
  stop TERM && same "after the end"
}

end_of_the_pod() {
  [ -z "$pod" ] || systemctl stop "$pod" "$scope" 2>/dev/null
  pod=
}

# A container as Podman has crun make it with systemd: a scope, and in it a group of crun's own, to which this version gives the limit.
# That group is raised, and nothing is left at the end.
container_of_crun() {
  container=8$(printf '%063d' 0)
  scope=/sys/fs/cgroup/machine.slice/libpod-$container.scope
  mkdir -p /tmp/crun/root && mount --bind / /tmp/crun/root || return 1
  cat >/tmp/crun/config.json <<J
{"ociVersion": "1.0.0", "root": {"path": "root"}, "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
 "process": {"cwd": "/", "args": ["/bin/sh", "-c", "while :; do :; done"], "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
 "linux": {"cgroupsPath": "machine.slice:libpod:$container", "namespaces": [{"type": "pid"}, {"type": "mount"}],
  "resources": {"cpu": {"quota": 20000, "period": 100000}}}}
J
  crun --systemd-cgroup run --detach --bundle /tmp/crun "$container" >/tmp/out 2>&1 </dev/null || fail "crun: $(cat /tmp/out)" || return 1
  limits=$(cd "$scope" && grep -H . cpu.max */cpu.max | paste -sd' ')
  echo "  $(crun --version | head -1): $limits"
  group=$scope/container
  quota_is 20000 || fail "crun gave the limit to another group: $limits" || return 1
  files >/tmp/before
  start_raising auto "/machine.slice/*"
  raised 60 20000 || return 1
  ./plimsoll status >/tmp/out 2>&1
  grep -q ^800000000000 /tmp/out || fail "status does not name the container: $(cat /tmp/out)" || return 1
  stop TERM && same "after the end"
}

end_of_the_container() {
  [ -z "$container" ] || { crun delete --force "$container"; umount /tmp/crun/root; } 2>/dev/null
  container=
}

# reads is how often the agent of the unit has read its configuration.
reads() { journalctl -b -u plimsoll.service -o cat --no-pager | grep -c 'configuration loaded'; }
has_read() { [ "$(reads)" -gt "$1" ]; }

# The shipped unit file: it is correct, is said to have started when it has, reads again when asked, and puts everything back on stop
# and after kill -9 (ExecStopPost).
unit_file() {
  mv /etc/plimsoll/config.yaml /tmp/good
  echo 'strategy: {policy: nonsense}' >/etc/plimsoll/config.yaml
  ! systemctl start plimsoll.service 2>/dev/null || fail "plimsoll.service starts with a bad configuration" || return 1
  mv /tmp/good /etc/plimsoll/config.yaml
  systemctl start plimsoll.service || fail "plimsoll.service does not start" || return 1
  "$program" status >/tmp/out 2>&1 || fail "plimsoll.service has started, but does not answer: $(cat /tmp/out)" || return 1
  raised 60 20000 || return 1
  "$program" status >/tmp/out 2>&1
  grep -q 'throttles: events from eBPF' /tmp/out || fail "the unit keeps eBPF from reporting throttles: $(cat /tmp/out)" || return 1
  before=$(reads)
  systemctl reload plimsoll.service || fail "systemctl reload plimsoll" || return 1
  within 20 has_read "$before" || fail "a reload does not have the configuration read again" || return 1
  systemctl stop plimsoll.service
  same "after systemctl stop" || return 1
  systemctl start plimsoll.service || fail "plimsoll.service does not start again" || return 1
  raised 60 20000 || return 1
  systemctl kill -s KILL plimsoll.service
  within 30 same "" >/dev/null || same "after kill -9 and ExecStopPost" || return 1
  systemctl start plimsoll.service || fail "plimsoll.service does not start once more" || return 1
  raised 60 20000 || return 1
  systemctl kill -s STOP plimsoll.service # it hangs: WatchdogSec= has it killed
  within 30 same "" >/dev/null || same "after the watchdog and ExecStopPost" || return 1
  [ "$(systemctl show -P Result plimsoll.service)" = watchdog ] || fail "the unit ended with: $(systemctl show -P Result plimsoll.service)"
}

# The unit that serves the network does so as a user of its own, without a capability, from the socket of the agent's unit. The
# agent itself has no socket of the network, and its unit may make none.
unit_serves() {
  systemctl start plimsoll.service plimsoll-serve.service || fail "the units do not start" || return 1
  within 60 answers /metrics plimsoll_build_info || fail "plimsoll-serve.service shows no metrics: $(journalctl -b -u plimsoll-serve.service -o cat --no-pager | tail -5)" || return 1
  answers /readyz ok || fail "not ready" || return 1
  pid=$(systemctl show -P MainPID plimsoll-serve.service)
  [ "$(stat -c %U:%G "/proc/$pid")" = plimsoll-serve:plimsoll ] || fail "it runs as $(stat -c %U:%G "/proc/$pid")" || return 1
  grep -q '^CapEff:.0000000000000000$' "/proc/$pid/status" || fail "it has capabilities: $(grep Cap "/proc/$pid/status")" || return 1
  systemctl stop plimsoll.service
  within 60 answers /metrics "no agent" || fail "it does not say that the agent is gone" || return 1
  systemctl stop plimsoll-serve.service
}

# answers PATH TEXT: the answer of the unit's address to a request for the path has the text.
answers() { bash -c 'exec 3<>/dev/tcp/127.0.0.1/12779 && printf "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" "$1" >&3 && cat <&3' - "$1" 2>/dev/null | grep -q "$2"; }

# An agent with --stand-by takes over from the unit when that is stopped, and what the unit calls then (ExecStopPost) neither fails,
# restores nor holds it.
unit_hands_over() {
  systemctl start plimsoll.service || fail "plimsoll.service does not start" || return 1
  raised 60 20000 || return 1
  start --stand-by --config /etc/plimsoll/config.yaml
  within 60 grep -q 'standing by' /tmp/agent.log || fail "it does not stand by" || return 1
  sleep 3 # it waits for the handover
  systemctl stop plimsoll.service
  state=$(systemctl show -P Result plimsoll.service)
  [ "$state" = success ] || fail "the unit ended with: $state" || return 1
  journalctl -b -u plimsoll.service -o cat --no-pager | grep -q 'nothing is restored' || fail "ExecStopPost= does not say that an agent runs" || return 1
  within 60 grep -q 'msg=running' /tmp/agent.log || fail "it does not take over" || return 1
  within 60 quota_above 20000 || fail "the successor does not raise the quota: $(quota)" || return 1
  [ ! -e /run/plimsoll/hold ] || fail "the successor is held: $(cat /run/plimsoll/hold)" || return 1
  stop TERM && same "after the successor's end"
}

install_unit() {
  program=$(sed -n 's/^ExecStart=[-+!@:]*\([^ ]*\).*/\1/p' plimsoll.service)
  install -D plimsoll "$program"
  install -D -m 644 plimsoll.service plimsoll-serve.service -t /etc/systemd/system
  install -D -m 644 plimsoll.sysusers /usr/lib/sysusers.d/plimsoll.conf
  systemd-sysusers || fail "systemd-sysusers" || return 1
  mkdir -p /etc/plimsoll
  printf 'strategy: {policy: none}\noverrides:\n- {cgroup: "%s", policy: auto}\n' $slice >/etc/plimsoll/config.yaml
  mkdir -p /run/systemd/system/plimsoll.service.d # no restart: the state after ExecStopPost is looked at
  printf '[Service]\nRestart=no\n' >/run/systemd/system/plimsoll.service.d/test.conf
  systemctl daemon-reload
  systemd-analyze verify /etc/systemd/system/plimsoll.service >/tmp/out 2>&1 && [ ! -s /tmp/out ] || fail "systemd-analyze verify: $(cat /tmp/out)"
}

setup() {
  systemctl revert burner.service
  systemctl restart burner.service
  within 10 quota_is 20000 || fail "burner.service has no limit of 20000: $(quota)"
}

teardown() {
  [ $result = ok ] || [ ! -e /etc/systemd/system/plimsoll.service ] ||
    journalctl -b -u plimsoll.service -o cat --no-pager -n 30 | sed 's/^/  unit: /'
  systemctl stop plimsoll.service plimsoll-serve.service 2>/dev/null
  end_of_the_pod
  end_of_the_container
  group=/sys/fs/cgroup$slice
}

cat >/etc/systemd/system/burner.service <<'U'
[Service]
ExecStart=/bin/sh -c 'while :; do :; done'
CPUQuota=20%
U
systemctl daemon-reload
names="reload_is_met larger_limit_is_adopted smaller_limit_after_release restarted_service pod_of_the_systemd_driver container_of_crun"
[ ! -e plimsoll.service ] || names="$names install_unit unit_file unit_serves unit_hands_over"
for name in $names; do scenario "$name"; done
exit $failed
