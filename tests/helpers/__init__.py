"""What several test modules share: oracles, small worlds, ways to call the command line."""
