"""The workbench: a local page that leads from a log to a policy, and the service behind it."""
