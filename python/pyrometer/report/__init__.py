# SPDX-License-Identifier: Apache-2.0
"""What a person reads in the terminal. Each reporter builds first and renders after."""
