# Shared by the scripts here, sourced: where things are kept.
vm=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
repo=$(readlink -f "$vm/../..")
cache=${PLIMSOLL_CACHE:-$repo/.cache}/vm
mkdir -p "$cache"

# private_apt SUITE...: fills the array apt_opts so that apt works on these suites with lists of its own. The host's
# lists and sources stay as they are. The mirrors are the ones that the host uses. ARCH=arm64: packages of that architecture.
private_apt() {
  local dir=$cache/apt${ARCH:+-$ARCH} key=/usr/share/keyrings/debian-archive-keyring.gpg suite uri mirrors
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
  mirrors=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' | sort -u)
  for suite in "$@"; do
    case $suite in
      *-security) uri=$(awk '$2 ~ /^bookworm-security$/ {print $1; exit}' <<<"$mirrors"); uri=${uri:-http://deb.debian.org/debian-security} ;;
      *) uri=$(awk '$2 ~ /^bookworm$/ {print $1; exit}' <<<"$mirrors"); uri=${uri:-http://deb.debian.org/debian} ;;
    esac
    echo "deb [signed-by=$key] $uri $suite main"
  done >"$dir/sources.list"
  apt_opts=(-qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none
    ${ARCH:+-o APT::Architecture=$ARCH -o APT::Architectures=$ARCH -o Dir::State::status=/dev/null})
  apt-get "${apt_opts[@]}" update
}

# kernel_file SERIES|FILE: the vmlinux of a series of kernels.sh, fetched if need be.
kernel_file() {
  [ -f "$1" ] && { echo "$1"; return; }
  "$vm/kernels.sh" "$1" >/dev/null
  if [ -n "${ARCH:-}" ]; then echo "$cache/kernels/$1-$ARCH/Image"; else echo "$cache/kernels/$1/vmlinux"; fi
}

# boot NAME KERNEL INITRD APPEND: boot.sh, with the console on stdout at the end and kept as a log file if the run failed.
boot() {
  local kept=$cache/logs/$1.log log result=0
  shift
  log=$(mktemp)
  trap 'kill $(jobs -p) 2>/dev/null; wait; rm -f "$log"; exit 130' INT TERM
  "$vm/boot.sh" "$@" >"$log" 2>&1 &
  wait $! || result=$?
  trap - INT TERM
  cat "$log"
  if [ "$result" -eq 0 ]; then
    rm "$log"
  else
    mkdir -p "$cache/logs"
    mv "$log" "$kept"
    echo "exit code $result, console kept in $kept" >&2
  fi
  return "$result"
}
