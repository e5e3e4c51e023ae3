"""The lab: a real cluster of N nodes on one machine, in name spaces (docs/lab.md).

Run as root through ``burstlab lab up``. Everything lives inside one PID name space, the site:
its first process holds the lab's lease, and the kernel ends all the rest with it.
"""
