"""One API process, from its settings to its last request."""

import socket

import uvicorn

from ledger.logs import configure_logs
from ledger.settings import load_settings
from service.app import create_app
from service.bind import check_bind

# Longer than any client or proxy keeps a connection that rests (httpx 5 s, haproxy.cfg 60 s). Whoever closes later is
# never spoken to over a connection that the other is just closing: such a request is lost without an answer.
REST_SECONDS = 75


class Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Event streams wait for jobs, not for us: let them end before uvicorn waits for them."""
        house = getattr(self.config.app.state, "house", None)  # type: ignore[union-attr]
        if house is not None:
            house.watch.close()
        await super().shutdown(sockets)


def run() -> None:
    settings = load_settings()
    check_bind(settings)
    configure_logs(settings)
    config = uvicorn.Config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=REST_SECONDS,
        timeout_graceful_shutdown=5,
    )
    Server(config).run()
