"""Making policies, changing their settings, and putting versions to use.

Such changes take turns, policy by policy. Decisions go on while a version is read from the store:
what a version that is not in use has learned does not change.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence

import msgspec

from pastwise.errors import PastwiseError
from pastwise.service.core import Core
from pastwise.service.policy import ServedPolicy
from pastwise.service.problems import Problem
from pastwise.service.randomness import new_seed
from pastwise.service.replay import restore_version
from pastwise.service.store.rows import AuditRow, Insert, PolicyRow, VersionRow
from pastwise.service.types import PolicySettings, PolicyView, SettingsPatch, VersionView
from pastwise.service.versions import ServedVersion
from pastwise.service.views import settings_text, version_view


class Deployment(Core):
    """What operators of policies do."""

    async def create_policy(self, name: str, settings: PolicySettings, who: str) -> PolicyView:
        """A new policy, without a version."""
        self._require_ready()
        if settings.version is not None:
            raise Problem("no-version", "a new policy has no version yet; leave out version")
        with await self._commits.reserve(("policy", name)) as ticket:
            if await self._read(self.store.policy, name) is not None:
                raise Problem("name-taken", f"there is a policy {name!r} already")
            if not await self._leading(self.store.lead, name):
                detail = f"another process makes the policy {name!r}"
                raise Problem("not-leader", detail, extra={"policy": name})
            now = self._clock()
            text = settings_text(settings)
            row = PolicyRow(name, text, 1, now)
            policy = ServedPolicy(row, None, 0, 0, self._snapshot_every)
            audit = AuditRow(0, now, who, "create policy", name, None, text)

        def serve() -> None:
            self._policies[name] = policy

        await self._commits.submit([Insert(row), Insert(audit)], ticket, serve)
        return policy.view()

    async def change_settings(
        self, name: str, changes: SettingsPatch, who: str, if_match: str
    ) -> PolicyView:
        """Other settings, among them the mode and the version in use.

        Parameters
        ----------
        if_match : str
            The etag of the settings that the caller has seen, with or without quotation marks.
        """
        with await self._commits.reserve(("policy", name)) as ticket:
            _require_current(self._serving(name), if_match)
            settings = _patched(self._serving(name).settings, changes)
            version, alarmed = await self._version_for(name, settings)
            policy = self._serving(name)
            now = self._clock()
            change = policy.change_settings(
                settings, version, who, now, reason=changes.reason, alarmed=alarmed
            )
        return await self._commit(policy, change, ticket)

    async def rollback(self, name: str, to: int, who: str, reason: str = "") -> PolicyView:
        """Back to another version, which continues from what it had learned."""
        with await self._commits.reserve(("policy", name)) as ticket:
            settings = msgspec.structs.replace(self._serving(name).settings, version=to)
            version, alarmed = await self._version_for(name, settings)
            policy = self._serving(name)
            now = self._clock()
            change = policy.change_settings(
                settings, version, who, now, "rollback", reason, alarmed
            )
        return await self._commit(policy, change, ticket)

    async def _version_for(
        self, name: str, settings: PolicySettings
    ) -> tuple[ServedVersion | None, bool]:
        """The version that settings name, with all that it has learned.

        Also whether outcomes that came while another version was in use raised its alarm.
        """
        number = settings.version
        in_use = self._serving(name).version
        if number is None or (in_use is not None and in_use.number == number):
            return in_use, False
        if await self._read(self.store.version, name, number) is None:
            detail = f"the policy {name!r} has no version {number}"
            raise Problem("not-found", detail)
        restored = await asyncio.to_thread(restore_version, self.store, name, number)
        return restored.version, restored.alarmed

    async def add_version(
        self,
        name: str,
        artefact: bytes,
        seed: bytes | None,
        note: str,
        who: str,
        despite: Sequence[str] = (),
    ) -> VersionView:
        """A new version from the bytes of a policy file; the first one is put to use at once.

        Parameters
        ----------
        seed : bytes, optional
            1 to 64 bytes that the random numbers of decisions follow from; by default from the
            operating system.
        despite : sequence of str
            What the one who deploys it has seen and accepted, such as ``"alarm"``.
        """
        with await self._commits.reserve(("policy", name)) as ticket:
            self._serving(name)
            now = self._clock()
            versions = await self._read(self.store.versions, name)
            row = VersionRow(
                policy=name,
                version=1 + max((row.version for row in versions), default=0),
                sha256=hashlib.sha256(artefact).hexdigest(),
                artefact=artefact,
                seed=new_seed() if seed is None else seed,
                note=note,
                despite=json.dumps(list(despite)),
                who=who,
                at=now,
            )
            version = await asyncio.to_thread(_loaded, row)
            view = version_view(row)
            policy = self._serving(name)
            change = policy.add_version(row, version, view, now)
        return await self._commit(policy, change, ticket)


def _require_current(policy: ServedPolicy, if_match: str) -> None:
    """Refuse a change of settings that somebody else has changed in between."""
    if if_match.strip() != "*" and if_match.strip().strip('"') != policy.etag:
        detail = f"the settings of {policy.name!r} were changed; their ETag is {policy.etag!r}"
        raise Problem("stale", detail)


def _patched(settings: PolicySettings, changes: SettingsPatch) -> PolicySettings:
    """Settings with some changed."""
    fields = msgspec.structs.asdict(changes)
    del fields["reason"]  # no setting
    given = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    return msgspec.structs.replace(settings, **given)


def _loaded(row: VersionRow) -> ServedVersion:
    """A version to serve, or the problem with its policy file."""
    try:
        version = ServedVersion.load(row)
        version.watch()
        return version
    except PastwiseError as error:
        raise Problem("policy-file-refused", str(error)) from error
