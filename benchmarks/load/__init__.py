"""Load on HTTP servers by k6, the servers, and what they use of the machine."""
