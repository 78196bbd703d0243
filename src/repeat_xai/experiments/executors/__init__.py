"""Executors make rows: in this process, in several processes of this machine, or on a Ray cluster."""
