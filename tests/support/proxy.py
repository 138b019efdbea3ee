"""One address in front of several API processes, as a load balancer gives: whoever takes the connection serves it."""

import asyncio
import threading
from contextlib import suppress
from itertools import count


class Proxy:
    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._turn = count()
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def start(self) -> None:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop
        ).result()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until either side hangs up: HTTP has no use for a connection that is open on one side only."""
        onward = await self._connect()
        if onward is not None:
            there, back = onward
            pumps = [asyncio.create_task(_pump(reader, back)), asyncio.create_task(_pump(there, writer))]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                back.close()
        writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """The next one in turn that is up."""
        first = next(self._turn)
        for step in range(len(self._ports)):
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", self._ports[(first + step) % len(self._ports)])
        return None


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
