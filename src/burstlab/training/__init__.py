"""Data-parallel training as a workload: what does not depend on the framework that trains.

``launch`` runs in burstlab's interpreter; ``loop`` and what it imports run in every rank, in the
framework's own, where nothing of burstlab's configuration is installed and numpy may be old.
"""
