# SPDX-License-Identifier: GPL-2.0-or-later
# The Python module over libxentrace: one file, by ctypes.

dist_pythonmodule_DATA = python/xentrace.py
