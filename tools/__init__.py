"""Set-up of a checkout; standard library only, run by the system's Python."""
