"""Every address of the service, with what it needs and what it answers."""

from __future__ import annotations

from pastwise.service import handlers_decisions as decisions
from pastwise.service import handlers_jobs as jobs
from pastwise.service import handlers_logs as logs
from pastwise.service import handlers_policies as policies
from pastwise.service import handlers_service as service
from pastwise.service.calls import Operation

OPERATIONS: tuple[Operation, ...] = (
    *decisions.OPERATIONS,
    *policies.OPERATIONS,
    *jobs.OPERATIONS,
    *logs.OPERATIONS,
    *service.OPERATIONS,
)
"""All operations; addresses are tried in this order, so the most frequent come first."""
