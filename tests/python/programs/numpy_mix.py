# SPDX-License-Identifier: Apache-2.0
"""A numpy mix with matrix products (BLAS kernels without CFI), sorts and element-wise work."""

import time

import numpy as np


def products(a: "np.ndarray") -> float:
    return float((a @ a).sum())


def elements(a: "np.ndarray") -> float:
    return float(np.exp(np.sin(a)).sum())


def sorts(a: "np.ndarray") -> float:
    return float(np.sort(a, axis=1)[0, 0])


def main() -> None:
    rng = np.random.default_rng(1)
    a = rng.random((400, 400))
    end = time.process_time() + 4
    while time.process_time() < end:
        products(a)
        elements(a)
        sorts(a)


main()
