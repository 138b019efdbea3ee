import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

import flashcards
from ledger import tracing
from ledger.db import Database
from ledger.doorbell import Bell, Doorbell
from ledger.keys import open_keyring
from ledger.metrics_port import open_metrics_port
from ledger.schema import ensure_schema
from ledger.settings import Settings
from ledger.store import Store
from service import bodies, errors, openapi, telemetry
from service import tracing as service_tracing
from service.bundles.routes import router as bundles
from service.datasets.routes import router as datasets
from service.deps import House
from service.flashcards.routes import router as flashcards_router
from service.guard import Guard
from service.health.routes import router as health
from service.jobs.routes import router as jobs
from service.keys.routes import router as keys
from service.learners.routes import router as learners
from service.models.routes import router as models
from service.page.routes import router as page
from service.rates import Rates
from service.reports.routes import router as reports
from service.session.routes import router as session
from service.storage.routes import router as storage
from service.submissions.routes import router as submissions
from service.uploads.routes import router as uploads
from service.watch import Watch
from service.webhooks.routes import router as webhooks

CHECKS_AT_ONCE = 4  # each may take a core and a gigabyte
DESCRIPTION = "Capture what a network knows, and replay it after the data is gone."


def create_app(settings: Settings) -> FastAPI:
    provider = tracing.open_provider("api")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        bodies.clear_spool(settings)  # makes the home folder where there is none
        db = Database(settings.database)
        ensure_schema(db)
        watch = Watch(db, settings.event_poll_seconds)
        bell = Bell(Doorbell(settings))
        figures = telemetry.open_registry(db, settings.home)
        port = open_metrics_port(settings, figures, lambda: True)
        app.state.house = House(
            settings=settings,
            db=db,
            store=Store(settings.store),
            doorbell=bell,
            watch=watch,
            checks=asyncio.Semaphore(CHECKS_AT_ONCE),
            keyring=open_keyring(settings, db),
            rates=Rates(settings),
            figures=figures,
        )
        yield
        watch.close()
        await app.state.house.rates.close()
        bell.close()
        if port is not None:
            port.shutdown()
        db.close()
        await asyncio.to_thread(tracing.close_provider, provider)

    app = FastAPI(
        title="Flashcards",
        version=flashcards.__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        generate_unique_id_function=openapi.operation_id,
        docs_url=None,  # it would load its scripts from elsewhere; /api is our own page of /openapi.json
        redoc_url=None,
        openapi_url=None,  # service.openapi gives it out
        telemetry=service_tracing.config(provider),
    )
    for router in (
        health,
        models,
        bundles,
        datasets,
        uploads,
        jobs,
        submissions,
        reports,
        flashcards_router,
        learners,
        storage,
        keys,
        webhooks,
        session,
        page,
    ):
        app.include_router(router)
    errors.install(app)
    openapi.install(app, locked=settings.admin_key_file is not None)
    app.add_middleware(Guard, settings=settings)
    return app
