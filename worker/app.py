"""The Celery application of the queue side. It holds no torch."""

from celery import Celery

from ledger.broker import celery_config
from ledger.settings import load_settings

app = Celery("flashcards.worker", include=["worker.tasks"])
app.conf.update(celery_config(load_settings()))
