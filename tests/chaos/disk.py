"""A small disk for the service's home, so that it can be full. It is a file: what is on it outlives the run.

The run goes on in a mount namespace of its own, and the disk is gone from the machine when the last process is.
"""

import errno
import os
import subprocess
import sys
from pathlib import Path

MEBIBYTES = 512
INSIDE = "FLASHCARDS_CHAOS_INSIDE"


def enter_namespace() -> None:
    """Become the same command in a mount namespace, where this user may have one with loop devices: as root."""
    if os.environ.get(INSIDE) or os.geteuid() != 0:
        return
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, "-m", "tests.chaos", *sys.argv[1:]])


class Disk:
    def __init__(self, image: Path, home: Path) -> None:
        self._image = image
        self._home = home
        self._ballast = home / "ballast"

    def mount(self) -> str | None:
        """None, or why there is no small disk here."""
        if not os.environ.get(INSIDE):
            return "needs root and `unshare --mount`"
        try:
            if not self._image.exists():
                self._make()
            self._home.mkdir(parents=True, exist_ok=True)
            self._run("mount", "-o", "loop,noatime,barrier=0", str(self._image), str(self._home))
        except (OSError, subprocess.CalledProcessError) as error:
            return f"no loop device: {error}"
        self._ballast.unlink(missing_ok=True)
        return None

    def unmount(self) -> None:
        self._run("umount", str(self._home))

    def fill(self) -> int:
        """To the last byte. Returns how many there were."""
        size = 0
        with self._ballast.open("ab") as file:
            for piece in (1024**2, 4096):
                while True:
                    try:
                        os.posix_fallocate(file.fileno(), size, piece)
                    except OSError as error:
                        if error.errno != errno.ENOSPC:
                            raise
                        break
                    size += piece
        return size

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def _make(self) -> None:
        draft = self._image.with_suffix(".tmp")
        with draft.open("wb") as file:
            file.truncate(MEBIBYTES * 1024**2)
        self._run("mkfs.ext4", "-q", "-F", "-m", "0", str(draft))
        draft.replace(self._image)

    def _run(self, *command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)
