"""The learning rate: Goyal et al. as Sato et al. print it (Performance of ABCI, section 3.5)."""

WHOLE = 100  # epochs
RATE, RATE_BATCH = 0.1, 256  # rate of so many images to a step
WARM_UP = 5  # epochs, from RATE to the rate of the batch
STEPS = (30, 60, 80)  # epochs, at each of which it falls to a tenth
MOMENTUM, DECAY = 0.9, 1e-4


def rate(epoch: float, batch: int, schedule: int = WHOLE) -> float:
    """At ``epoch`` (0.5: the middle of the first) with ``batch`` images to a step of all ranks.

    ``schedule`` epochs are as long as the printed 100: a shorter training takes the same course. A
    batch of fewer than 256 images begins with its own rate, not with one too high for it.
    """
    whole = RATE * batch / RATE_BATCH
    at = epoch * WHOLE / schedule
    if at < WARM_UP:
        least = min(RATE, whole)
        return least + (whole - least) * at / WARM_UP
    return whole * 0.1 ** sum(at >= step for step in STEPS)
