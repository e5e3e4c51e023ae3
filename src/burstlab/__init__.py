"""burstlab: how much does this storage, staged this way, speed up this workload?"""

__version__ = "0.1.0"
