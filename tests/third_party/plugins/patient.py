"""A plugin of pytest for tests that wait for processes by sleeping: they sleep longer, for a machine that is busy."""

import asyncio

TIMES = 20
sleep = asyncio.sleep


async def patient_sleep(delay: float, result: object = None) -> object:
    """Sleep `TIMES` as long; a sleep of 0 only lets others run."""
    return await sleep(delay * TIMES, result)


asyncio.sleep = patient_sleep  # type: ignore[assignment]
