"""Decision makers, one file each."""
