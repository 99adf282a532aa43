#!/bin/bash
# generated.sh: the eBPF programs in the repository are those of their C source, bit for bit. The compiler is Debian's
# clang-19, one version for as long as the release stands, and no header but ours is included.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v clang-19 >/dev/null || { echo "generated.sh: no clang-19; hint: make setup" >&2; exit 1; }
before=$(find internal -name "*_bpfel.*" -exec sha256sum {} +)
go generate ./internal/probe/... ./internal/scx/...
[ "$before" = "$(find internal -name "*_bpfel.*" -exec sha256sum {} +)" ] || {
  echo "generated.sh: the committed programs were not those of the source; they are now: commit them" >&2
  git status --short -- internal >&2
  exit 1
}
