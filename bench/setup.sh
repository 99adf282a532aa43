#!/bin/bash
# setup.sh [record]: makes the Python that the bench compares with, below .cache/, and prints its path. record: the one that reads
# the flight recorder's files.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.cache/bench${1:+-$1}
wanted=bench/${1:+$1-}requirements.txt
stamp=$venv/requirements.txt
if ! cmp -s "$wanted" "$stamp"; then
  command -v python3 >/dev/null || { echo "setup.sh: no python3; hint: apt install python3 python3-venv" >&2; exit 1; }
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2
  cp "$wanted" "$stamp"
fi
echo "$PWD/$venv/bin/python"
