#!/bin/bash
# lint.sh: what can be said about the code without running it.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOGC=400 GOMEMLIMIT=4GiB # what is run here is short, and collects its garbage seldom

mapfile -t go_files < <(git ls-files --cached --others --exclude-standard '*.go')
unformatted=$(gofmt -l "${go_files[@]}")
if [ -n "$unformatted" ]; then
  echo "gofmt: not formatted; hint: make fmt" >&2
  echo "$unformatted" >&2
  exit 1
fi
go mod tidy -diff
go vet -tags kube,browser ./...
go tool staticcheck -tags kube,browser ./...
# For arm64 the types are checked, from the sources of all that is imported: to compile it for a second architecture takes ten
# times as long on a machine that has not done so before. Tier vm-arm64 compiles and runs it.
gopackages=$(go tool -n gopackages)
types=$(CGO_ENABLED=0 GOARCH=arm64 "$gopackages" -mode allsyntax ./...)
! grep -P '^\t/\S+:\d+:\d+: ' <<<"$types" || { echo "lint.sh: so say the types on arm64" >&2; exit 1; }
while read -r script; do bash -n "$script"; done < <(git ls-files --cached --others --exclude-standard '*.sh')
# Each test that moved.list names exists, once for a tier: a renamed test would run in the wrong tier, and its old name
# nowhere.
while read -r package test from _; do
  grep -qs "^func $test(" "$package"/*_kernel_test.go || { echo "test/moved.list: $package has no $test (moved from $from); hint: name it as it is now, or take the line out" >&2; exit 1; }
done < <(grep -v -e '^#' -e '^$' test/moved.list)
twice=$(awk '!/^#/ && NF { sub(/[!@].*/, "", $3); print $1, $2, $3 }' test/moved.list | sort | uniq -d)
[ -z "$twice" ] || { echo "test/moved.list: twice: $twice" >&2; exit 1; }
go run ./lab/figures -check docs/figures
bash test/unit-file.sh
bash test/profiles.sh
bash test/setup-boot.sh
# The cache of tests does not see the chart, which is outside of their module: -count=1.
(cd deploy/tools && go mod tidy -diff && go vet ./... && go test -vet=off -count=1 ./... && go run ./manifests -check ../helm/plimsoll ../manifests)
bash test/generated.sh
bash test/reproducible.sh
bash test/vuln.sh
