#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the profiler costs, beside its peers: run.sh [--python NAME]... [TOPIC]...
# Topics: overhead truth budget agreement accuracy scaling threads growth, or quick. Needs build/wheel (make wheel).
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-$(scripts/find-python)}
exec "$python" bench/cost "$@"
