"""The paper as pure functions, in its order."""
