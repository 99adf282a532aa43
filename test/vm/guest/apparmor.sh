#!/bin/sh
# apparmor.sh: the shipped AppArmor profiles, enforced by this kernel, in a guest of ../run.sh with cgroup v2. The programs do all
# that they are for under their profiles, without one refusal in the kernel's log. What no program needs is refused: a shell's
# tools stand in for each of them there.
cd "$(dirname "$0")" || exit 1
# The agent is a member of the group of those who read: as with the shipped unit and the chart.
if [ ! -e /etc/group ]; then
  mkdir -p /etc
  printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65532::/:/bin/sh\n' >/etc/passwd
  echo 'readers:x:65532:root' >/etc/group
  exec su -s /bin/sh root -c 'exec sh ./main.sh'
fi
group=/sys/fs/cgroup/lab/a
own=/sys/fs/cgroup/served
security=/sys/kernel/security
. ./lib.sh
mount -t securityfs securityfs $security
[ "$(cat /sys/module/apparmor/parameters/enabled)" = Y ] || { echo "this kernel does not enforce AppArmor"; exit 1; }

# confined PROFILE PROGRAM ARGUMENT...: becomes the program.
cat >confined <<'C'
#!/bin/sh
echo "exec $1" >/proc/self/attr/exec || exit 126
shift
exec $NAMED "$@"
C
chmod +x confined
mkdir -p /usr/local/bin /etc/plimsoll /var/lib /run/plimsoll-read
echo "{strategy: {policy: cfsQuotaBurstOnly, sharePoolThresholdPercent: 100}, include: ['/lab/*']}" >/etc/plimsoll/config.yaml
mv plimsoll plimsoll-lease /usr/local/bin/
printf '#!/bin/sh\nexec ./confined plimsoll /usr/local/bin/plimsoll "$@"\n' >plimsoll # what lib.sh runs
chmod +x plimsoll

profiles_load() {
  dd if=profiles of=$security/apparmor/.load bs=4M 2>/tmp/out || fail "the kernel does not take the profiles: $(cat /tmp/out)" || return 1
  for p in plimsoll plimsoll-serve plimsoll-lease; do
    grep -qx "$p (enforce)" $security/apparmor/profiles || fail "$p is not enforced: $(cat $security/apparmor/profiles)" || return 1
  done
}

# is PID PROFILE: a process is confined by it.
is() { [ "$(cat "/proc/$1/attr/current")" = "$2 (enforce)" ] || fail "process $1 is $(cat "/proc/$1/attr/current"), not $2"; }
refilled() { ./plimsoll status --json 2>/dev/null | grep -q '"refills": *[1-9]'; }
answers() { ./plimsoll status >/tmp/out 2>&1; }

# unrefused: no program was refused anything.
unrefused() {
  dmesg | grep 'apparmor="DENIED"' >/tmp/denied
  [ ! -s /tmp/denied ] || fail "refused: $(cat /tmp/denied)"
}

# start_agent: one that raises and refills.
start_agent() {
  kill -STOP $spinner
  start --config /etc/plimsoll/config.yaml --listen '' --read-socket /run/plimsoll-read/read.sock --read-group readers
  within 60 answers || fail "the agent does not answer: $(cat /tmp/out)" || return 1
  is $agent plimsoll || return 1
  kill -CONT $spinner
  raised 60 20000
}

served() { wget -q -O - http://127.0.0.1:12779/metrics 2>/dev/null | grep -q plimsoll_build_info; }
agent_and_serve() {
  start_agent || return 1
  within 10 refilled || fail "no refill" || return 1
  answers
  grep -q 'throttles: events from eBPF' /tmp/out || fail "no events: $(cat /tmp/out)" || return 1
  mkdir -p $own
  (
    echo 0 >$own/cgroup.procs # of a group with a limit the Go runtime reads that, as in a container and a unit
    exec su -s /bin/sh nobody -c './confined plimsoll-serve /usr/local/bin/plimsoll serve --agent-socket /run/plimsoll-read/read.sock'
  ) >/tmp/serve.log 2>&1 &
  helper=$!
  within 20 served || fail "no metrics: $(cat /tmp/serve.log)" || return 1
  is $helper plimsoll-serve || return 1
  stop TERM && same "after SIGTERM" && unrefused
}

# The lease kills an agent that hangs, and puts back what it raised.
lease() {
  start_agent || return 1
  ./confined plimsoll-lease /usr/local/bin/plimsoll-lease >/tmp/lease.log 2>&1 &
  helper=$!
  kill -STOP $agent
  within 40 same "" >/dev/null || { same "after the lease has run out"; fail "$(cat /tmp/lease.log)"; } || return 1
  is $helper plimsoll-lease || return 1
  within 10 gone $agent || fail "the agent lives: $(cat /tmp/lease.log)" || return 1
  agent=
  unrefused
}

# What no program may do, done by a shell's tools under its profile. Without one each of them may do it, or fails otherwise.
attempts='cat /etc/secret|mkdir /etc/new|truncate -s 0 /usr/local/bin/plimsoll|mount -t tmpfs none /mnt|mknod /tmp/node c 1 3|
hostname other|kill -CONT 1|chown 1 /run/mine|cat /proc/1/mem|insmod /etc/secret|chroot / /bin/true|tee /proc/sys/kernel/panic'
is_refused() { "$@" </dev/null 2>&1 | grep -qiE 'denied|not permitted'; }
refused() {
  mkdir -p /mnt
  echo secret >/etc/secret
  : >/tmp/allowed >/run/mine
  for pair in plimsoll:/plimsoll plimsoll-serve:/plimsoll plimsoll-lease:/plimsoll-lease; do
    profile=${pair%:*} program=${pair#*:}
    cp /bin/busybox $program
    held=$(NAMED="-a cat" ./confined $profile $program /proc/self/attr/current 2>&1) # it runs, or all would seem refused
    [ "$held" = "$profile (enforce)" ] || echo "  $program under $profile: $held" >>/tmp/allowed
    while read -r name rest; do
      NAMED="-a $name" is_refused ./confined $profile $program $rest || echo "  $profile allows $name $rest" >>/tmp/allowed
    done </tmp/attempts
  done
  while read -r name rest; do
    ! is_refused busybox $name $rest || echo "  without a profile $name $rest is refused" >>/tmp/allowed
  done </tmp/attempts
  [ ! -s /tmp/allowed ] || fail "$(cat /tmp/allowed)"
}

setup() {
  helper=
  mkdir -p $group
  echo "20000 100000" >$group/cpu.max
  plimsoll-spin &
  spinner=$!
  echo $spinner >$group/cgroup.procs
}
teardown() {
  [ -z "$helper" ] || kill -9 $helper
  kill -9 $spinner
  wait 2>/dev/null
  within 5 rmdir $group
  [ ! -d $own ] || within 5 rmdir $own
}
mkdir /sys/fs/cgroup/lab
echo +cpu >/sys/fs/cgroup/lab/cgroup.subtree_control
echo "$attempts" | tr -d '\n' | tr '|' '\n' >/tmp/attempts
for name in profiles_load agent_and_serve lease refused; do scenario $name; done
exit $failed
