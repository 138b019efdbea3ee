"""The same client for those who await.

from flashcards import AsyncClient

async with AsyncClient() as client:
    job = await client.capture("model_...", count=1000)
    cards = await (await job.wait()).cards()
"""

from flashcards.client.aio.client import AsyncClient

__all__ = ["AsyncClient"]
