"""Random input: a right result or an error that the user can fix, never anything else.

The number of examples is fixed, so that all of it takes about a minute. `make fuzz` goes on with
other seeds for as long as wanted.
"""
