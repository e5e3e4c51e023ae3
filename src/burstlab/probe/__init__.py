"""`burstlab probe`, the workload of the storage probe: what a storage does on a cell's hosts.

On all hosts at once, each step after the last has ended everywhere: write, see who keeps what
was written and whether the next host's file can be read, write a larger file, read the next
host's with the caches empty.
"""
