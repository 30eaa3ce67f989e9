#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an export costs at three sizes: CPU time, and instructions where there is a valgrind.
# Usage: run.sh [BUILD_DIR], one that meson has set up with its tests.
set -euo pipefail
build=${1:-$(dirname "$0")/../../build}
program=$build/bench/export/export_cost

grep -m 1 'model name' /proc/cpuinfo || true
uname -sr
date -u +%F
ninja -C "$build" --quiet bench/export/export_cost
"$program"

command -v valgrind >/dev/null || exit 0
echo 'instructions, in millions; a node:'
for step in view sparkprofile pb.gz collapsed json; do
  for nodes in 10000 30000 100000; do
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=measured \
      "$program" "$step" "$nodes" 2>&1 |
      awk -v step="$step" -v nodes="$nodes" '/refs:/ {
        gsub(",", "", $NF); printf "%-13s %7d nodes %8.1f %7.0f\n", step, nodes, $NF / 1e6, $NF / nodes
      }'
  done
done
