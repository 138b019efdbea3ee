"""The service from Python.

from flashcards import Client

with Client() as client:
    model = client.models.push("autoencoder.safetensors", architecture="blk_4_fil_64")
    cards = client.capture(model, count=1000).wait(progress=True).cards()

`flashcards.AsyncClient` is the same for those who await: `flashcards/client/aio` is what is written by hand, and the
modules of the same names here are made from it.
"""

from flashcards.client.client import Client

__all__ = ["Client"]
