"""Studies as data: a spec, a runner, tidy results. `paper` is the paper's own, `timing` its figure of time."""
