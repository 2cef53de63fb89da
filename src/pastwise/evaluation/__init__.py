"""Is a rule better than what was done, and how sure is that."""
