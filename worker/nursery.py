"""The process that runners are forked from. It imports torch once; a job then waits milliseconds for its runner.

Each request on the line brings four descriptors: stdin, stdout and stderr of a runner to be, and a socket of its own,
over which pid and pidfd go back at birth and the exit code at the end. The dead stay unburied until that socket closes,
so that nobody signals a process that has taken over the pid.

A fork takes one thread along and leaves the locks of all others held: whatever runs here before must start none.
"""

import gc
import json
import os
import selectors
import signal
import socket
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

DESCRIPTORS = 4
CRASHED = 1


@dataclass
class Born:
    pid: int
    pidfd: int
    control: socket.socket
    is_dead: bool = False
    is_forgotten: bool = False  # whoever asked for it has closed the socket


class Nursery:
    def __init__(self, line: socket.socket, live: Callable[[], None]) -> None:
        self._line = line
        self._live = live
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Until the line closes. The runners need no telling: their stdin closes with it."""
        gc.collect()
        gc.freeze()  # what is here now is shared with every runner, as long as no collection writes to it
        self._selector.register(self._line, selectors.EVENT_READ, self._bear)
        while True:
            for key, _ in self._selector.select():
                if key.data() is False:
                    return

    def _bear(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._line, 1, DESCRIPTORS)
        if not message:
            return False
        *streams, control_fd = descriptors
        control = socket.socket(fileno=control_fd)
        if not _has_closed(control):
            pid = os.fork()
            if pid == 0:
                self._become_runner(streams)
            self._watch(Born(pid, os.pidfd_open(pid), control))
        else:
            control.close()
        for stream in streams:
            os.close(stream)
        return True

    def _watch(self, born: Born) -> None:
        with suppress(BrokenPipeError):  # it is forgotten already, which the selector will tell
            socket.send_fds(born.control, [json.dumps({"pid": born.pid}).encode()], [born.pidfd])
        self._selector.register(born.pidfd, selectors.EVENT_READ, lambda: self._note_death(born))
        self._selector.register(born.control, selectors.EVENT_READ, lambda: self._forget(born))

    def _note_death(self, born: Born) -> None:
        self._selector.unregister(born.pidfd)
        born.is_dead = True
        found = os.waitid(os.P_PID, born.pid, os.WEXITED | os.WNOWAIT)
        assert found is not None
        code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        with suppress(BrokenPipeError):
            born.control.send(json.dumps({"code": code}).encode())
        self._bury(born)

    def _forget(self, born: Born) -> None:
        self._selector.unregister(born.control)
        born.is_forgotten = True
        self._bury(born)

    def _bury(self, born: Born) -> None:
        if born.is_dead and born.is_forgotten:
            os.waitpid(born.pid, 0)
            os.close(born.pidfd)
            born.control.close()

    def _become_runner(self, streams: list[int]) -> NoReturn:
        """Never returns: the objects above hold descriptors by number, and those numbers get another meaning here."""
        code = CRASHED
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            os.closerange(len(streams), os.sysconf("SC_OPEN_MAX"))
            self._live()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            # The interpreter's own shutdown can hang on native threads, and there is nothing left to lose.
            os._exit(code)


def _has_closed(control: socket.socket) -> bool:
    """Nothing ever comes over it, so that it can be read means that it is at its end."""
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        return bool(selector.select(timeout=0))
