#!/bin/bash
# setup.sh: makes the Python that the bench compares with, below .cache/, and prints its path.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.cache/bench
stamp=$venv/requirements.txt
if ! cmp -s bench/requirements.txt "$stamp"; then
  command -v python3 >/dev/null || { echo "setup.sh: no python3; hint: apt install python3 python3-venv" >&2; exit 1; }
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r bench/requirements.txt >&2
  cp bench/requirements.txt "$stamp"
fi
echo "$PWD/$venv/bin/python"
