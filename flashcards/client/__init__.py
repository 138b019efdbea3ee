"""The service from Python.

from flashcards import Client

with Client() as client:
    model = client.models.push("autoencoder.safetensors", architecture="blk_4_fil_64")
    job = client.jobs.wait(client.capture(model=model.id, count=1000).id)
    cards = client.flashcards.cards(job.result.flashcards)
"""

from flashcards.client.client import Client

__all__ = ["Client"]
