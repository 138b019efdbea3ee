"""Many jobs at once, each told as it ends: one thread, one connection a job.

python examples/watch_many.py MODEL [MODEL ...]
"""

import asyncio
import sys

from flashcards import AsyncClient
from flashcards.errors import JobFailed


async def capture(client: AsyncClient, model: str, source: str) -> str:
    job = await client.capture(model, count=200, source=source, r=10 if source == "maze" else "auto")
    try:
        ended = await job.wait()
    except JobFailed as failed:
        return f"{source}: {failed}"
    cards = await ended.cards()
    return f"{source}: {len(cards)} cards, mean {cards.mean():.1f}, {ended.result.cards_per_second:,.0f} a second"


async def main(*models: str) -> None:
    async with AsyncClient() as client:
        asked = [capture(client, model, source) for model in models for source in ("maze", "geometric", "latent")]
        for told in asyncio.as_completed(asked):
            print(await told)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
