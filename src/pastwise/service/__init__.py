"""The decision service: decide and learn over HTTP, durably.

A request is parsed into one of `types`, answered by the `engine`, and committed by the `store`
before the answer is sent. Every failure is a `problems.Problem`. Needs ``pastwise[service]``.
"""
