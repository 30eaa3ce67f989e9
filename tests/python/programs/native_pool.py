# SPDX-License-Identifier: Apache-2.0
"""Runs a native thread pool through ctypes. Usage: native_pool.py LIBRARY"""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.run_pool.argtypes = [ctypes.c_int, ctypes.c_double]
library.run_pool(4, 0.5)
