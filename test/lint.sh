#!/bin/bash
# lint.sh: what can be said about the code without running it.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t go_files < <(git ls-files --cached --others --exclude-standard '*.go')
unformatted=$(gofmt -l "${go_files[@]}")
if [ -n "$unformatted" ]; then
  echo "gofmt: not formatted; hint: make fmt" >&2
  echo "$unformatted" >&2
  exit 1
fi
go mod tidy -diff
go vet -tags kube ./...
go tool staticcheck -tags kube ./...
CGO_ENABLED=0 GOARCH=arm64 go build ./...
while read -r script; do bash -n "$script"; done < <(git ls-files --cached --others --exclude-standard '*.sh')
go run ./lab/figures -check docs/figures
bash test/unit-file.sh
# The cache of tests does not see the chart, which is outside of their module: -count=1.
(cd deploy/tools && go mod tidy -diff && go vet ./... && go test -vet=off -count=1 ./... && go run ./manifests -check ../helm/plimsoll ../manifests)
bash test/generated.sh
