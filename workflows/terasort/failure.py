"""How a run fails: one line that tells the place, the cause and what to do."""


class Failed(Exception):
    """Nothing of the run goes on."""
