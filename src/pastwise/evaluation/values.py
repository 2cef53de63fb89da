"""Values of rules: exact on a known model, and on models sampled from the posterior of a log.

On a known model the value of a rule is a recursion over the horizon,

    V_0 = 0,   V_{k+1}(s) = sum_a rule(a | s) (r(s, a) + E[V_k(s') | s, a]),

or, until absorption, the solution of a linear system. From a log alone the model is uncertain.
Models are sampled from its posterior and every rule is evaluated on the same samples, so that the
spread of the paired differences says how much is known about which rule is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, entries, group_sum, normalise
from pastwise._numerics.checks import require_whole_number
from pastwise._numerics.threads import CORES
from pastwise.data.counts import TransitionCounts
from pastwise.errors import ParameterError
from pastwise.evaluation.criterion import Criterion
from pastwise.models.base import TransitionModel
from pastwise.models.hierarchy import Assumptions, TransitionPosterior
from pastwise.models.samples import Epochs, SampledModels
from pastwise.theory.fpd import require_horizon

if TYPE_CHECKING:
    from scipy.sparse import csr_array

OPTIMUM = "optimum"
"""Name of the optimal policy of each sampled model."""

LOGGED = "logged"
"""Name of what was done: a rule that is sampled with each model, given the decisions of the log."""

SAMPLES_OF_OPTIMUM = 200
"""Most samples whose optimal policy is computed, which takes longer than all rules: no verdict
rests on it, and so many fix the bounds of its interval to about 5 % of its width."""

MAX_SAMPLES = 1_000_000
"""Most samples; more is a slip of the keyboard."""

MAX_THREADS = 1000
"""Most threads; more is one as well."""


# Known models.


def policy_value(
    model: TransitionModel, rule: FloatArray, reward: FloatArray, horizon: int
) -> FloatArray:
    """Expected total reward over ``horizon`` epochs from each state: [..., S].

    Parameters
    ----------
    rule : [..., S, A]
        Leading axes are policies, all evaluated at once.
    reward : broadcastable to [..., S, A]
        Expected reward of an action in a state; ``model.expect(utility)`` for a utility of next
        states.
    """
    require_horizon(horizon)
    now = (rule * reward).sum(axis=-1)
    value = np.zeros(now.shape)
    for _ in range(horizon):
        value = now + (rule * model.expect(value)).sum(axis=-1)
    return value


def value_until_absorption(
    closed_loop: FloatArray, reward: FloatArray, absorbing: IntArray
) -> FloatArray:
    """Expected total reward until an absorbing state is reached: [..., S]; 0 in absorbing states.

    Parameters
    ----------
    closed_loop : [S, S] dense or scipy sparse
        p(next_state | state) under a policy.
    reward : [..., S]
        Expected reward of the step from each state.
    """
    from scipy.sparse import csr_array, diags_array, eye_array
    from scipy.sparse.linalg import splu

    # Transitions among the transient states.
    S = closed_loop.shape[0]
    is_transient = np.ones(S)
    is_transient[absorbing] = 0.0
    mask = diags_array(is_transient)
    transient = mask @ csr_array(closed_loop) @ mask

    # V = r + transient V.
    try:
        solver = splu((eye_array(S, format="csc") - transient).tocsc())
    except RuntimeError:
        raise ParameterError(
            "the value is infinite: from some state no absorbing state is ever reached"
        ) from None
    columns = np.ascontiguousarray((reward * is_transient).reshape(-1, S).T)
    return np.asarray(solver.solve(columns).T.reshape(reward.shape))


# Sampled models.


@dataclass(frozen=True, eq=False)
class SampledValues:
    """Values of policies on the same sampled models.

    Attributes
    ----------
    names : tuple of str
        Of the P policies.
    values : [samples, P]
        NaN where the value of a policy was not computed: see `SAMPLES_OF_OPTIMUM`.
    requested : int
        Number of samples requested; there are fewer if the sampling was interrupted.
    """

    names: tuple[str, ...]
    values: FloatArray
    requested: int

    @property
    def number(self) -> int:
        """Number of samples."""
        return len(self.values)

    def __getitem__(self, name: str) -> FloatArray:
        """Values of a policy, as far as they were computed: [samples or fewer]."""
        values = self.values[:, self.names.index(name)]
        return np.asarray(values[~np.isnan(values)])


def sample_values(
    posterior: TransitionPosterior,
    rules: Mapping[str, FloatArray],
    criterion: Criterion,
    samples: int,
    *,
    seed: int = 0,
    on_step: Callable[[int], None] = lambda done: None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
    with_references: bool = True,
) -> SampledValues:
    """Values of rules, of what was done, and of models' own optimum, on sampled models.

    Ctrl-C, or ``should_stop``, ends the sampling and keeps what there is. The sampled models depend
    neither on the rules nor on the number of threads.

    Parameters
    ----------
    rules : name -> [S, A]
    samples : int
        Number of models.
    on_step : function
        Called with the number of further samples after each batch.
    should_stop : function
        Called after each batch; True ends the sampling.
    threads : int, optional
        As many as the processor has cores by default.
    with_references : bool
        Whether to add what was done, under the name `LOGGED`, and the optimum of each of the first
        models, under the name `OPTIMUM`.
    """
    require_whole_number("the number of samples", samples, 1, MAX_SAMPLES)
    if threads is not None:
        require_whole_number("threads", threads, 1, MAX_THREADS)
    given_rules = np.stack(list(rules.values()))
    batch_size = posterior.batch_size
    num_batches = -(-samples // batch_size)

    def batch(index: int) -> FloatArray:
        # Each batch has its own stream, so results do not depend on the order of threads.
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
        models = posterior.sample(batch_size, rng)
        initial = criterion.sample_initial(batch_size, rng)
        all_rules = given_rules[None]
        if with_references:
            behaviour = posterior.sample_behaviour(batch_size, rng)[:, None]
            given = np.broadcast_to(given_rules, (batch_size, *given_rules.shape))
            all_rules = np.concatenate([given, behaviour], axis=1)
        reward = criterion.sample_rewards(models, rng)
        with_optimum = with_references and index * batch_size < SAMPLES_OF_OPTIMUM
        values = rule_values(
            models, all_rules, criterion, initial, reward, with_optimum=with_optimum
        )
        if criterion.unseen is not None:
            share = criterion.unseen.sample_share(batch_size, rng)[:, None]
            values = (1 - share) * values + share * criterion.utility.min()
        still_needed = samples - index * batch_size
        return values[:still_needed]

    parts: list[FloatArray] = []
    with ThreadPoolExecutor(threads or CORES) as pool:
        try:
            for part in pool.map(batch, range(num_batches)):
                parts.append(part)
                on_step(len(part))
                if should_stop():
                    break
        except KeyboardInterrupt:
            if not parts:
                raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    values = np.concatenate(parts)
    if not with_references:
        return SampledValues(tuple(rules), values[:, :-1], samples)
    return SampledValues((*rules, LOGGED, OPTIMUM), values, samples)


def rule_values(
    models: SampledModels,
    rules: FloatArray,
    criterion: Criterion,
    initial: FloatArray | None = None,
    reward: FloatArray | None = None,
    *,
    with_optimum: bool = True,
    tolerance: float = 1e-5,
) -> FloatArray:
    """Value of each rule on each model, then of the model's own optimal policy: [n, P + 1].

    Parameters
    ----------
    rules : [P, S, A] or [n, P, S, A]
        The same for all models, or for each its own.
    initial : [1 or n, S], optional
        Distribution of the start state in each model; by default the criterion's.
    reward : [n, S, A], optional
        Expected reward of each decision in each model; by default the criterion's utility.
    with_optimum : bool
        Otherwise the value of the optimal policy is NaN: it takes longer than all rules.
    tolerance : float
        Largest error of an early stop of the recursion, relative to the range of the utility. The
        default is far below the spread of the values and below the digits that are shown.
    """
    P, S, A = rules.shape[-3:]
    rules = rules.reshape(-1, P, S, A)
    if initial is None:
        initial = criterion.initial[None]
    is_mean = criterion.ends is None

    # An error of the mean over the horizon may add up over the horizon.
    max_error = tolerance * float(np.ptp(criterion.utility))
    if is_mean:
        max_error *= criterion.horizon
    epochs = Epochs(criterion.horizon, criterion.goes_on, max_error)

    # Values from each state.
    if reward is None:
        reward = models.expect(criterion.utility)
    value = np.full((models.number, S, P + 1), np.nan)
    value[..., :-1] = models.rule_values(reward, rules, epochs)
    if with_optimum:
        allowed = np.ones((1, A), dtype=bool) if criterion.allowed is None else criterion.allowed
        value[..., -1] = models.best_values(reward, allowed, epochs)

    # Mean over the start state.
    total = (initial[..., None] * value).sum(axis=1)
    return np.asarray(total / criterion.horizon if is_mean else total)


def occupancy(
    closed_loop: FloatArray | csr_array, criterion: Criterion, *, tolerance: float = 1e-5
) -> FloatArray:
    """Share of epochs in each state, of those before the end of an episode: [S].

    Parameters
    ----------
    closed_loop : [S, S]
        p(next_state | state) under a rule; sparse if there are many states.
    tolerance : float
        Largest error of an early stop; the default is below the digits that are shown.
    """
    horizon = criterion.horizon
    goes_on = criterion.goes_on
    distribution = criterion.initial * goes_on
    total = np.zeros(len(criterion.initial))
    for epoch in range(horizon):
        total = total + distribution
        following = (distribution @ closed_loop) * goes_on
        change = np.abs(following - distribution).sum()
        distribution = following
        epochs_left = horizon - epoch - 1
        if epochs_left and change * epochs_left**2 < tolerance:
            total = total + epochs_left * distribution
            break
    return normalise(total) if total.any() else total


def posterior_of(
    log: TransitionCounts,
    criterion: Criterion,
    *,
    seed: int,
    design_effect: float,
    assumptions: Assumptions,
) -> TransitionPosterior:
    """The posterior of a log's system, leaning by the criterion.

    The world does not depend on the goal, so records count by their own weight and not by their
    similarity to the goal.
    """
    even_log = log.evenly_weighted()
    return TransitionPosterior(
        even_log,
        arrival_value(even_log, criterion),
        seed=seed,
        design_effect=design_effect,
        assumptions=assumptions,
    )


def arrival_value(log: TransitionCounts, criterion: Criterion) -> FloatArray:
    """Value of arriving in each state if things go on as in the log: [S].

    For the lean of `models.hierarchy`, which needs to know what is good, and roughly how much.
    """
    S = len(log.states)
    pair = log.state * S + log.next_state
    pooled = group_sum(pair, log.weight, S * S).reshape(S, S)

    # Where the log never left a state, it goes on as from anywhere.
    anywhere = normalise(pooled.sum(axis=0) + 1 / S)
    chain = normalise(pooled + 0.01 * anywhere)
    utility = criterion.utility
    if utility.ndim > 1:
        of_transition = entries(utility, log.state, log.action, log.next_state)
        arrivals = group_sum(log.next_state, log.weight, S)
        total = group_sum(log.next_state, log.weight * of_transition, S)
        utility = total / np.maximum(arrivals, 1.0)

    goes_on = criterion.goes_on
    value = utility
    for _ in range(min(criterion.horizon, 100)):
        value = utility + goes_on * (chain @ value)
    return np.asarray(value)
