#!/bin/bash
# setup-boot.sh: what setup.sh installs starts with no boot, also where the installation fails, and what was enabled before
# still does. In a root of its own, where programs of our own stand for apt's.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v systemctl >/dev/null || { echo "setup-boot.sh: no systemctl; hint: make setup" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
export SETUP_ROOT=$root/host
mkdir -p "$root/bin" "$SETUP_ROOT"/{etc/systemd/system,usr/sbin}
for unit in old.service:multi-user new.service:multi-user new.socket:sockets; do
  printf '[Install]\nWantedBy=%s.target\n' "${unit#*:}" >"$SETUP_ROOT/etc/systemd/system/${unit%:*}"
done
systemctl --quiet --root="$SETUP_ROOT" enable old.service
links() { cd "$SETUP_ROOT"; find . -type l -o -name policy-rc.d; }
before=$(links)

for program in dpkg-query go; do echo '#!/bin/sh' >"$root/bin/$program"; done # nothing is installed
printf '#!/bin/sh\necho 0\n' >"$root/bin/id"
cat >"$root/bin/apt-get" <<'A'
#!/bin/sh
[ "$1" = install ] || exit 0
[ -x "$SETUP_ROOT/usr/sbin/policy-rc.d" ] || echo "no policy-rc.d"
systemctl --quiet --root="$SETUP_ROOT" enable new.service new.socket
touch "$SETUP_ROOT/installed"
exit $RESULT
A
chmod 755 "$root"/bin/*
for RESULT in 0 1; do
  export RESULT
  result=0
  PATH=$root/bin:$PATH bash test/setup.sh >"$root/out" 2>&1 || result=$?
  if [ "$result" != $RESULT ] || [ ! -e "$SETUP_ROOT/installed" ] || [ "$(links)" != "$before" ] || grep -v '^setup: ' "$root/out"; then
    echo "setup-boot.sh: setup.sh ended with $result where apt-get does with $RESULT, and left enabled:" >&2
    links >&2
    exit 1
  fi
  rm "$SETUP_ROOT/installed"
done
