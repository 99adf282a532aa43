#!/bin/bash
# koordlet.sh: builds koordlet from its Go module into the cache, once a version, and prints the path of the program. It takes
# some minutes of 2 cores the first time. Needs Go, the Go module proxy, gcc and libpfm4-dev (koordlet links libpfm4 through cgo).
# The module is built in a folder of its own, for its go.mod has replacements, which `go install` refuses; nothing of it gets into
# ours.
set -euo pipefail
version=v1.8.0
module=github.com/koordinator-sh/koordinator
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cache=$(readlink -m "${PLIMSOLL_CACHE:-$here/../../.cache}/peers")
built=$cache/koordlet-$version
[ ! -e "$built" ] || { echo "$built/koordlet"; exit 0; }

[ -e /usr/include/perfmon/pfmlib.h ] || { echo "koordlet.sh: no perfmon/pfmlib.h; hint: apt-get install libpfm4-dev" >&2; exit 1; }
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # one build at a time
if [ ! -e "$built" ]; then
  echo "koordlet.sh: build koordlet $version, some minutes" >&2
  rm -rf "$cache"/making.*
  making=$(mktemp -d "$cache/making.XXXXXX")
  cd "$making" # outside of our module
  source=$(go mod download -json $module@$version | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  cp -r --no-preserve=mode "$source" source
  (cd source && CGO_ENABLED=1 go build -trimpath -ldflags '-s -w' -o ../koordlet ./cmd/koordlet)
  cp -r source/config/crd crd
  rm -rf source
  mv -T "$making" "$built" # the last step: a half-made folder is never taken for whole
fi
echo "$built/koordlet"
