# Shared by the end-to-end scripts of the guests, sourced. $group is the directory of the control group under test, in the
# hierarchy of the cpu controller; CGROUP_VERSION is v1 or v2.

now() { cut -d. -f1 /proc/uptime; }
fail() { echo "  $*"; return 1; }
gone() { ! kill -0 "$1" 2>/dev/null; }

if [ "$CGROUP_VERSION" = v1 ]; then
  quota() { cat "$group/cpu.cfs_quota_us"; }
  burst() { cat "$group/cpu.cfs_burst_us"; }
  has_burst() { [ -e "$group/cpu.cfs_burst_us" ]; }
else
  quota() { cut -d' ' -f1 "$group/cpu.max"; }
  burst() { cat "$group/cpu.max.burst"; }
  has_burst() { [ -e "$group/cpu.max.burst" ]; }
fi
quota_is() { [ "$(quota)" = "$1" ]; }
steady() { was=$(quota) && sleep 1 && quota_is "$was"; }
quota_above() { [ "$(quota)" -gt "$1" ]; }
burst_set() { ! has_burst || [ "$(burst)" -gt 0 ]; }
burst_clear() { ! has_burst || [ "$(burst)" = 0 ]; }

# within SECONDS COMMAND...: whether the command comes true in time.
within() {
  deadline=$(($(now) + $1))
  shift
  until "$@"; do
    [ "$(now)" -lt $deadline ] || return 1
    sleep 0.1
  done
}

# raised SECONDS QUOTA: whether the quota is raised above the given one in time. A raise may leave the burst no room.
raised() { within "$1" quota_above "$2" || fail "the quota is not above $2: $(quota)"; }

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

# start FLAG...: an agent in the background. $! is the agent itself, not a shell around it.
start() {
  ./plimsoll run --verbose --listen 127.0.0.1:0 "$@" >>/tmp/agent.log 2>&1 &
  agent=$!
}

# start_raising POLICY PATTERN FLAG...: an agent that may use all of the node for raises. By default the guard leaves them half
# of two CPUs, and on an emulated one the agent itself takes a third.
start_raising() {
  echo "{strategy: {policy: $1, sharePoolThresholdPercent: 100}, include: ['$2']}" >/tmp/raising.yaml
  shift 2
  start --config /tmp/raising.yaml "$@"
}

# stop SIGNAL: the agent ends, and on TERM with success.
stop() {
  kill "-$1" $agent
  within 30 gone $agent || fail "the agent does not end on SIG$1" || return 1
  wait $agent
  code=$?
  agent=
  [ "$1" = KILL ] || [ $code -eq 0 ] || fail "the agent exits with $code"
}

# scenario NAME: runs the function of that name between setup and teardown, and says what came of it.
scenario() {
  : >/tmp/agent.log
  agent=
  rm -rf /run/plimsoll
  setup
  files >/tmp/before
  begin=$(now)
  if "$1"; then result=ok; else result=FAIL failed=1; fi
  echo "$result $1 $(($(now) - begin))s"
  [ $result = ok ] || { sed 's/^/  agent: /' /tmp/agent.log; ./plimsoll status 2>&1 | sed 's/^/  status: /'; }
  [ -z "$agent" ] || kill -9 "$agent" 2>/dev/null
  teardown
}
failed=0
