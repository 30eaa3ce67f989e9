# SPDX-License-Identifier: Apache-2.0
"""What pyrometer_arm.start names: the entry point of PEP 829, for Python 3.15 and newer.

Such an entry costs every Python that starts about 8 ms, as `site` imports pkgutil and re
for it. So as long as `site` runs the import lines of pyrometer.pth, those arm instead, and
the second of them takes the entry off the list. The two files have different names
because a .start file turns off the import lines in the .pth file of its own name.
"""

import os
import sys


def start() -> None:
    """Does what the first line of pyrometer.pth does; after that line, nothing."""
    before = {name for name in sys.modules if name.partition(".")[0] != "pyrometer"}
    try:
        if "PYROMETER_RUN" in os.environ:
            from pyrometer import _arm

            _arm.arm(before)
        elif os.environ.get("PYROMETER"):
            from pyrometer import _service

            _service.arm(before)
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]
