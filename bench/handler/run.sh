#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the handler benchmark: run.sh [BUILD_DIR]. With a Python at hand that has
# ctypes (PYTHON, else python3), it is measured inside that process too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
build=${1:-$(mktemp -d)}
mkdir -p "$build"
flags="-std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes
  -fPIC -fvisibility=hidden -fno-tree-loop-distribute-patterns -I$root/src -I$root/include"
sources="$root/src/unwind/*.c $root/src/base/clock.c $here/measure.c
  $root/src/signal/cpu_x86_64.c $root/src/signal/guess.c $root/src/signal/probe.c
  $root/src/signal/step.c $root/src/signal/step_odd.c $root/src/signal/table.c
  $root/src/signal/walk.c"

grep -m 1 'model name' /proc/cpuinfo || true
uname -sr
date -u +%F
cc $flags $sources "$here/handler_cost.c" "$here/stacks.c" "$here/tables.c" \
  -lunwind -lpthread -ldl -o "$build/handler_cost"
status=0
"$build/handler_cost" libstdc++.so.6 libcrypto.so.3 || status=1

python=${PYTHON:-$(command -v python3 || true)}
if [ -n "$python" ] && "$python" -c 'import ctypes' 2>/dev/null; then
  cc $flags -shared $sources "$here/python_cost.c" "$here/tables.c" -lunwind -lpthread -ldl \
    -o "$build/python_cost.so"
  "$python" "$here/python_cost.py" "$build/python_cost.so"
fi
exit $status
