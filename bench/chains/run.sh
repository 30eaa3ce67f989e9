#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong stacks, counted: run.sh [SECONDS] [PYTHON...]. Needs build/wheel (make wheel).
# Without PYTHONs: all that scripts/find-python and scripts/interpreters have brought.
# The status is 1 when Pyrometer shows a stack that did not exist, or only a part of one.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
cache=${PYROMETER_CACHE:-$HOME/.cache/pyrometer}/interpreters
if [ $# -eq 0 ]; then
  for version in 3.12 3.13; do
    found=$(scripts/find-python $version 2>/dev/null) && set -- "$@" "$found"
  done
  for name in 3.13t 3.14 3.15; do
    [ ! -x "$cache/$name/python" ] || set -- "$@" "$cache/$name/python"
  done
fi

site=$PWD/build/bench/chains/site
rm -rf "$site" && mkdir -p "$site"
python=${PYTHON:-$(scripts/find-python)}
"$python" -m zipfile -e build/wheel/*.whl "$site"

grep -m 1 'model name' /proc/cpuinfo || true
uname -sr
date -u +%F
echo "bench/chains/run.sh $seconds"
exec "$python" bench/chains/compare.py "$site" "$seconds" "$@"
