"""Handlers of the session: who a page is, and what it shows first.

A page makes one request before it shows anything. The answer has what every screen begins with, so
that a screen needs few more.
"""

from __future__ import annotations

from pastwise import __version__
from pastwise.methods.registry import names
from pastwise.service.calls import Answer, Call
from pastwise.service.problems import Problem
from pastwise.workbench.app import Workbench
from pastwise.workbench.handlers_projects import bench_of, counts_view
from pastwise.workbench.session import set_cookie
from pastwise.workbench.sources import samples_at_hand
from pastwise.workbench.types import SessionQuery, SessionRequest, SessionView
from pastwise.workbench.views import project_list, project_view

MOST_LOGS = 500
"""Logs of the first answer, as many as the list has on one page at most."""


async def start_session(call: Call, body: SessionRequest) -> Answer:
    """Exchange the key of the address for a cookie."""
    bench = bench_of(call)
    bench.require_ready()
    secret = bench.sessions.exchange(body.key)
    view = await _session(bench, SessionQuery(log=bench.opened))
    return Answer(view, 201, (set_cookie(call, secret),))


async def session(call: Call) -> Answer:
    """What this workbench is."""
    return Answer(await _session(bench_of(call), call.query(SessionQuery)))


async def _session(bench: Workbench, query: SessionQuery) -> SessionView:
    view = SessionView(
        version=__version__,
        root=str(bench.root),
        project=bench.opened,
        methods=names(),
        samples=samples_at_hand(),
        data=str(bench.settings.data.absolute()),
        projects=project_list(bench, None, MOST_LOGS),
        log=None,
        counts=None,
    )
    if query.log is None:
        return view

    # A log that is gone is the business of the screen that shows it.
    try:
        found = bench.projects.project(query.log)
    except Problem:
        return view
    view.log = project_view(bench, found)
    if query.counts and found.counts is not None:
        view.counts = await counts_view(bench, found.counts)
    return view
