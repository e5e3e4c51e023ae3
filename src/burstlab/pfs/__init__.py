"""The parallel file system of a site, and an emulated one for machines that have none."""
