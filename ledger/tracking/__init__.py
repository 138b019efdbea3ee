"""Tracking servers: where people look who do not look here. One protocol, and MLflow behind it."""

from ledger.settings import Settings
from ledger.tracking.tracker import Tracker


def may_use(settings: Settings, tenant: str) -> bool:
    """Is there a tracking server, and is it this tenant's business?"""
    return bool(settings.mlflow_url) and not {tenant, "*"}.isdisjoint(settings.mlflow_tenants)


def open_tracker(settings: Settings) -> Tracker:
    # Its HTTP client is imported by those who have a server to speak to.
    from ledger.tracking.mlflow import Mlflow

    return Mlflow(settings.mlflow_url, settings.mlflow_token, settings.mlflow_timeout_seconds)
