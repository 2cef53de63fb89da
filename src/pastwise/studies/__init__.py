"""Experiments as data: a specification, a runner, tidy results."""
