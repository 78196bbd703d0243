"""Experiments explain and judge many images under many settings, and keep the results in a store."""
