# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk that can be made to stall: an ext4 of its own on a loop device. Needs root."""

import contextlib
import os
import subprocess
import tempfile


@contextlib.contextmanager
def small_file_system(bytes_):
    with tempfile.TemporaryDirectory(prefix="xentraced-bench.") as directory:
        image, mount = os.path.join(directory, "image"), os.path.join(directory, "mount")
        os.mkdir(mount)
        with open(image, "wb") as f:
            f.truncate(bytes_)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mount], check=True)
        try:
            yield mount
        finally:
            subprocess.run(["umount", mount], check=True)
