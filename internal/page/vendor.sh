#!/bin/bash
# vendor.sh [-check]: copies uPlot from its npm package, at the version and checksum of package-lock.json, into assets/.
# -check: copies nothing, and fails where the committed copy is not the package's file. It needs npm and the registry.
set -euo pipefail
cd "$(dirname "$0")"

command -v npm >/dev/null || { echo "vendor.sh: no npm; hint: apt-get install npm" >&2; exit 1; }
cache=../../.cache/page
mkdir -p "$cache"
cp package.json package-lock.json "$cache"
(cd "$cache" && npm ci --silent --ignore-scripts --no-audit --no-fund)
from=$cache/node_modules/uplot
while read -r file copy; do
  if [ "${1:-}" = -check ]; then
    cmp "$from/$file" "assets/$copy" || { echo "vendor.sh: assets/$copy is not uPlot's $file; hint: bash internal/page/vendor.sh" >&2; exit 1; }
  else
    cp "$from/$file" "assets/$copy"
  fi
done <<'LIST'
dist/uPlot.iife.min.js uplot.iife.min.js
dist/uPlot.min.css uplot.min.css
LICENSE uplot.LICENSE.txt
LIST
[ "${1:-}" = -check ] || (cd assets && sha256sum uplot.* >../uplot.sha256)
