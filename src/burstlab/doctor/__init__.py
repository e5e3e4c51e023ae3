"""What this machine can run, what not, why, and how to change that."""
