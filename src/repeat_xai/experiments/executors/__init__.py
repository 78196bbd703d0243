"""Executors decide where rows are made: in this process, in several processes, or on a Ray cluster."""
