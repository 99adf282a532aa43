#!/bin/sh
# cell.sh: in the guest, runs every test binary NAME.test with the tests of NAME.run, then the end-to-end script.
# A skip is allowed by PLIMSOLL_REQUIRE_KERNEL only where this kernel lacks the thing, or where the test says which other
# machine runs it. A package of which nothing ran has not passed; in vm-all, which leaves no test out, a kernel may lack all of it.
# PLIMSOLL_EMULATED says that the CPU is emulated: a test's bound on time does not hold here.
# PLIMSOLL_BINARY is the binary that tests run: there is no Go here.
export PLIMSOLL_REQUIRE_KERNEL=1 PLIMSOLL_EMULATED=1 PLIMSOLL_BINARY=$PWD/plimsoll
timeout=1800s # of a package, in the guest's time; what a hung one costs
[ ! -e brief ] || { timeout=600s && export GOGC=400; } # reading the kernel's type information takes a quarter less; vm-all measures memory
failed=0
for binary in ./*.test; do
  [ -e "$binary" ] || break
  name=$(basename "$binary" .test)
  begin=$(cut -d. -f1 /proc/uptime)
  "$binary" -test.v -test.timeout $timeout -test.skip "$(cat skip)" -test.run "$(cat "$name.run")" >/tmp/out 2>&1
  code=$?
  seconds=$(($(cut -d. -f1 /proc/uptime) - begin))
  ran=$(grep -c '^--- PASS' /tmp/out)
  skipped=$(grep -c '^ *--- SKIP' /tmp/out)
  if [ $code -eq 0 ] && { [ ! -e brief ] && [ "$skipped" -gt 0 ] || [ "$ran" -gt 0 ]; }; then
    echo "ok $name ${seconds}s ($ran tests, $skipped skipped)"
    sed -n 's/^--- PASS: \([^ ]*\) (\([0-9][0-9.]*\)s)/slow \2 \1/p' /tmp/out | grep -E '^slow ([5-9]|[0-9]{2,})\.'
  else
    echo "FAIL $name ${seconds}s"
    cat /tmp/out
    failed=1
  fi
done
if [ -e ./e2e.sh ]; then sh ./e2e.sh || failed=1; fi
exit $failed
