// Generated from the service's types by: npm run types

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * ProblemView
         * @description A problem (RFC 9457); kinds of problems may have more members.
         */
        ProblemView: {
            type: string;
            title: string;
            status: number;
            /** @default  */
            detail: string;
            /** @default  */
            instance: string;
            /** @default [] */
            errors: components["schemas"]["ProblemPart"][];
            /** @default  */
            request_id: string;
        };
        /**
         * ProblemPart
         * @description One part of a request that is wrong.
         *
         *         Attributes
         *         ----------
         *         pointer : str
         *             JSON pointer into the body (RFC 6901); empty for the whole.
         *         code : str
         *             Slug of what is wrong with this part.
         *         near : tuple of str
         *             Known labels that are similar.
         */
        ProblemPart: {
            pointer: string;
            code: string;
            detail: string;
            /** @default [] */
            near: string[];
        };
        /**
         * VerdictView
         * @description An evaluation, as `Evaluation.to_dict` has it.
         *
         *         Attributes
         *         ----------
         *         overruled_by : list of str
         *             Codes of the findings and objections because of which the comparison is not fair.
         */
        VerdictView: {
            sentence: string;
            values: {
                [key: string]: components["schemas"]["IntervalView"];
            };
            value_in_log: number | null;
            matches_log: boolean;
            comparisons: {
                [key: string]: components["schemas"]["ComparisonView"];
            };
            alternatives: {
                [key: string]: components["schemas"]["ComparisonView"];
            };
            alternatives_in_words: string;
            differences: {
                [key: string]: components["schemas"]["IntervalView"];
            };
            verdict: {
                [key: string]: "better" | "cannot tell" | "worse";
            };
            alarm: components["schemas"]["AlarmView"];
            objections: components["schemas"]["ObjectionView"][];
            margin: number;
            margin_choice: string;
            unit: string;
            support: components["schemas"]["EvaluationSupportView"];
            measure: string;
            horizon: number;
            design_effect: number;
            samples: number;
            samples_requested: number;
            visits: {
                [key: string]: {
                    [key: string]: number;
                };
            };
            in_sample: {
                [key: string]: components["schemas"]["IntervalView"];
            };
            estimates: {
                [key: string]: components["schemas"]["EstimateView"];
            };
            overruled_by: string[];
            /** @default [] */
            warnings: string[];
        };
        /**
         * IntervalView
         * @description An interval of a value or of a difference.
         */
        IntervalView: {
            mean: number | null;
            low: number | null;
            high: number | null;
            level: number;
        };
        /**
         * ComparisonView
         * @description The rule compared with a reference; ``deciding`` is the interval that decides.
         */
        ComparisonView: {
            reference: string;
            difference: components["schemas"]["IntervalView"];
            deciding: components["schemas"]["IntervalView"];
            /** @enum {unknown} */
            by_the_log: "better" | "cannot tell" | "worse";
            /** @enum {unknown} */
            verdict: "better" | "cannot tell" | "worse";
            chance_better: number;
        };
        /**
         * AlarmView
         * @description Whether negative transfer is likely.
         */
        AlarmView: {
            raised: boolean;
            worse_than_logged: boolean;
            expected_difference: number;
            limit: number;
            harm: number;
            chance_of_harm: number;
        };
        /**
         * ObjectionView
         * @description A reason why a comparison is not fair.
         */
        ObjectionView: {
            code: string;
            message: string;
        };
        /**
         * EvaluationSupportView
         * @description What a rule and its evaluation rest on.
         */
        EvaluationSupportView: {
            records: number;
            similarity: number;
            effective: number;
            visits_well_seen: number;
            well_seen: number;
            states_by_extrapolation: string[];
            /** @default null */
            episodes: number | null;
        };
        /**
         * EstimateView
         * @description A second opinion from logged episodes, without sampled models.
         */
        EstimateView: {
            mean: number | null;
            low: number | null;
            high: number | null;
            level: number;
            usable: boolean;
            why_not: string;
            difference: components["schemas"]["IntervalView"] | null;
            in_sample: number | null;
            folds: number;
            effective_episodes: number | null;
            smallest_effective_episodes: number | null;
            without_overlap: number | null;
            possible_low: number | null;
            possible_high: number | null;
            assumption: string;
        };
        /**
         * ComparisonResult
         * @description Result of the job of a comparison.
         */
        ComparisonResult: {
            drafts: string[];
            goals: components["schemas"]["GoalComparison"][];
            samples: number;
            warnings: string[];
        };
        /**
         * GoalComparison
         * @description Policies judged by one goal.
         *
         *         Attributes
         *         ----------
         *         values : dict
         *             Of each draft by its id, and of the references ``logged``, ``random`` and ``optimum``.
         *         verdicts : dict
         *             Of each draft by its id, against what was done.
         *         differences : dict
         *             Of each draft to what was done: the intervals that decide.
         *         alarms : list of str
         *             Drafts for which negative transfer is likely.
         */
        GoalComparison: {
            goal: {
                [key: string]: unknown;
            };
            sentence: string;
            measure: string;
            horizon: number;
            margin: number;
            values: {
                [key: string]: components["schemas"]["IntervalView"];
            };
            verdicts: {
                [key: string]: "better" | "cannot tell" | "worse";
            };
            differences: {
                [key: string]: components["schemas"]["IntervalView"];
            };
            alarms: string[];
            pairs: components["schemas"]["PairView"][];
            overruled_by: string[];
        };
        /**
         * PairView
         * @description Difference of two policies on the same sampled models, and what it says of ``a``.
         */
        PairView: {
            a: string;
            b: string;
            mean: number | null;
            low: number | null;
            high: number | null;
            /** @enum {unknown} */
            verdict: "better" | "cannot tell" | "worse";
        };
        /**
         * ProbeResult
         * @description Result of the job of a probe; ``episode`` is how much the episode explains.
         */
        ProbeResult: {
            items: components["schemas"]["ProbeItem"][];
            episode: components["schemas"]["ProbeItem"] | null;
            warnings: string[];
        };
        /**
         * ProbeItem
         * @description What became of the policy with one more column in the state.
         *
         *         Attributes
         *         ----------
         *         explains : float
         *             How much of what was done the column explains next to the state, from 0 to 1: one minus the
         *             ratio of the remaining uncertainties.
         *         advice : list
         *             Of states with enough records: those where it turns around first, then the most frequent.
         *         compared, turned : int
         *             Number of states with enough records, and of those in which the advice turns around.
         *         problem : str, optional
         *             Why there is no policy with this column.
         */
        ProbeItem: {
            columns: string[];
            states: number;
            explains: number | null;
            advice: components["schemas"]["AdviceView"][];
            compared: number;
            turned: number;
            verdict: ("better" | "cannot tell" | "worse") | null;
            difference: components["schemas"]["IntervalView"] | null;
            /** @default null */
            problem: string | null;
        };
        /**
         * AdviceView
         * @description What is most probable in a state with one more column, and what it was without.
         *
         *         Attributes
         *         ----------
         *         p, p_before : float
         *             Probability of each of the two, in its own rule.
         *         turns : bool
         *             Whether they differ.
         */
        AdviceView: {
            state: string;
            records: number;
            action: string;
            p: number;
            before: string;
            p_before: number;
            turns: boolean;
        };
        /**
         * ReplayView
         * @description Result of a replay from the policy file through all events.
         *
         *         Attributes
         *         ----------
         *         difference : str, optional
         *             The first event that came out otherwise, and how.
         */
        ReplayView: {
            events: number;
            state_hash: string;
            equal: boolean;
            seconds: number;
            /** @default null */
            difference: string | null;
        };
        /**
         * DecideRequest
         * @description A request for a decision.
         *
         *         Attributes
         *         ----------
         *         allowed : list, optional
         *             Actions that are possible now; all of them by default.
         *         episode : str, optional
         *             What the decision belongs to, for the log of decisions.
         *         context : dict, optional
         *             Kept with the decision, not used; at most 4 KiB of JSON.
         *         dry_run : bool
         *             Answer what would be decided; nothing is stored.
         */
        DecideRequest: {
            state: string | number | boolean | {
                [key: string]: string | number | boolean | null;
            };
            /** @default null */
            allowed: (string | number | boolean)[] | null;
            /** @default null */
            episode: string | null;
            /** @default null */
            context: {
                [key: string]: unknown;
            } | null;
            /** @default false */
            dry_run: boolean;
        };
        /**
         * DecisionView
         * @description A decision.
         *
         *         Attributes
         *         ----------
         *         decision_id : str
         *             Empty in a dry run.
         *         propensity : float
         *             The very probability that the action was sampled with.
         *         evidence : int
         *             Number of outcomes that the version had learned by then.
         *         mode : str
         *             ``"shadow"`` asks the caller not to act on it.
         */
        DecisionView: {
            decision_id: string;
            action: string;
            propensity: number;
            policy: string;
            policy_version: number;
            evidence: number;
            /** @enum {unknown} */
            mode: "live" | "paused" | "shadow";
            support: components["schemas"]["SupportView"];
            outcome_due: string;
        };
        /**
         * SupportView
         * @description What the rule of a state rests on.
         */
        SupportView: {
            records: number;
            similarity: number;
            weak: boolean;
        };
        /**
         * OutcomeRequest
         * @description What followed a decision.
         *
         *         Attributes
         *         ----------
         *         next_state : label, raw value or row, optional
         *             May be missing only where each record is a problem of one decision.
         *         reward : float, optional
         *             Needed where the log of the policy has rewards.
         *         at : str, optional
         *             When it happened, by the caller's clock; kept, not used.
         */
        OutcomeRequest: {
            /** @default null */
            next_state: string | number | boolean | {
                [key: string]: string | number | boolean | null;
            } | null;
            /** @default null */
            reward: number | null;
            /** @default null */
            at: string | null;
        };
        /**
         * OutcomeView
         * @description What became of an outcome; ``evidence`` is the revision after it.
         */
        OutcomeView: {
            /** @enum {unknown} */
            status: "cancelled" | "late" | "learned" | "missing" | "new-label" | "open" | "recorded" | "waiting";
            evidence: number;
        };
        /**
         * DecideManyRequest
         * @description Several requests in one transaction.
         */
        DecideManyRequest: {
            items: components["schemas"]["DecideRequest"][];
        };
        /**
         * ManyDecisions
         * @description Answers of decide-many, in the order of the requests.
         */
        ManyDecisions: {
            items: components["schemas"]["ItemAnswer"][];
        };
        /**
         * ItemAnswer
         * @description One answer of decide-many: a decision, or the problem with this item.
         */
        ItemAnswer: {
            /** @default null */
            decision: components["schemas"]["DecisionView"] | null;
            /** @default null */
            problem: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * TakenRequest
         * @description Somebody did something else than was decided.
         */
        TakenRequest: {
            action: string | number | boolean;
            by: string;
        };
        /**
         * DecisionDetail
         * @description All that is stored of a decision.
         *
         *         Attributes
         *         ----------
         *         key : str, optional
         *             The idempotency key that it was requested with.
         *         conflicts : list
         *             Other outcomes that were reported for it, the oldest first.
         */
        DecisionDetail: {
            decision_id: string;
            policy: string;
            policy_version: number;
            seq: number;
            evidence: number;
            state: string;
            features: {
                [key: string]: unknown;
            } | null;
            action: string;
            propensity: number;
            allowed: string[] | null;
            floor: number;
            /** @enum {unknown} */
            mode: "live" | "paused" | "shadow";
            episode: string | null;
            context: {
                [key: string]: unknown;
            } | null;
            at: string;
            outcome_due: string;
            /** @enum {unknown} */
            status: "cancelled" | "late" | "learned" | "missing" | "new-label" | "open" | "recorded" | "waiting";
            /** @default null */
            taken: string | null;
            /** @default null */
            taken_by: string | null;
            /** @default null */
            key: string | null;
            /** @default null */
            outcome: components["schemas"]["OutcomeDetail"] | null;
            /** @default [] */
            conflicts: components["schemas"]["ConflictView"][];
        };
        /**
         * OutcomeDetail
         * @description An outcome as it is stored; ``at`` is the service's clock, ``reported_at`` the caller's.
         */
        OutcomeDetail: {
            next_state: string | null;
            reward: number | null;
            /** @enum {unknown} */
            status: "cancelled" | "late" | "learned" | "missing" | "new-label" | "open" | "recorded" | "waiting";
            at: string;
            /** @default null */
            reported_at: string | null;
        };
        /**
         * ConflictView
         * @description Another outcome that was reported for a decision; the first one stays.
         */
        ConflictView: {
            next_state: string | null;
            reward: number | null;
            at: string;
        };
        /**
         * RuleView
         * @description What the policy would do in a state; no decision is made.
         */
        RuleView: {
            policy: string;
            policy_version: number;
            evidence: number;
            state: string;
            rule: {
                [key: string]: number;
            };
            support: components["schemas"]["SupportView"];
        };
        /**
         * DecisionsQuery
         * @description Which decisions of a policy; times are those of the decisions.
         *
         *         Attributes
         *         ----------
         *         status : str, optional
         *             A status, or ``"in-time"`` for all with an outcome that was not late, or ``"conflict"`` for
         *             those that another outcome was reported for.
         */
        DecisionsQuery: {
            /** @default null */
            cursor: string | null;
            /** @default 50 */
            limit: number;
            /** @default null */
            status: ("cancelled" | "late" | "learned" | "missing" | "new-label" | "open" | "recorded" | "waiting") | ("conflict" | "in-time") | null;
            /** @default null */
            state: string | null;
            /** @default null */
            action: string | null;
            /** @default null */
            since: string | null;
            /** @default null */
            until: string | null;
        };
        /**
         * Page[DecisionDetail]
         * @description A part of a list; ``next`` is the cursor of the part that follows, or null.
         */
        Page_DecisionDetail_: {
            items: components["schemas"]["DecisionDetail"][];
            /** @default null */
            next: string | null;
        };
        /**
         * PageQuery
         * @description Which part of a list.
         */
        PageQuery: {
            /** @default null */
            cursor: string | null;
            /** @default 50 */
            limit: number;
        };
        /**
         * Page[PolicyView]
         * @description A part of a list; ``next`` is the cursor of the part that follows, or null.
         */
        Page_PolicyView_: {
            items: components["schemas"]["PolicyView"][];
            /** @default null */
            next: string | null;
        };
        /**
         * PolicyView
         * @description A policy as it is served now.
         *
         *         Attributes
         *         ----------
         *         etag : str
         *             Changes with the settings; the header ``ETag`` has it in quotation marks.
         *         seq : int
         *             Number of the last event.
         *         evidence : int
         *             Number of outcomes that the version in use has learned.
         *         learns : bool
         *             False where the method's rule is fixed within a version.
         *         alarm : bool
         *             The monitor's alarm is on.
         */
        PolicyView: {
            name: string;
            settings: components["schemas"]["PolicySettings"];
            etag: string;
            created: string;
            seq: number;
            evidence: number;
            /** @default false */
            learns: boolean;
            /** @default false */
            alarm: boolean;
        };
        /**
         * PolicySettings
         * @description How a policy is served.
         *
         *         Attributes
         *         ----------
         *         mode : str
         *             ``"live"``; ``"shadow"``: decides, and asks not to act; ``"paused"``: refuses.
         *         version : int, optional
         *             The version in use; null until there is one.
         *         outcome_due_s : float
         *             An outcome that comes later than this is not learned.
         *         learn : bool
         *             Learn from outcomes.
         *         learn_delay : str
         *             ``"window"`` learns an outcome when its window closes instead of at once.
         *         on_unseen : str
         *             A state without records: ``"refuse"``, answer by the ``"prior"``, or by ``"action:LABEL"``.
         *         floor : float
         *             Smallest probability of each action that is possible.
         *         on_alarm : str
         *             Whether an alarm of the monitor switches to shadow.
         *         labels : str
         *             ``"open"`` keeps outcomes with unknown labels for the next version.
         *         retention_days : int
         *             How long decisions are kept.
         *         context_days : int
         *             How long the contexts of decisions are kept.
         */
        PolicySettings: {
            /**
             * @default shadow
             * @enum {unknown}
             */
            mode: "live" | "paused" | "shadow";
            /** @default null */
            version: number | null;
            /**
             * @description Seconds; at most ten years.
             * @default 3600
             */
            outcome_due_s: number;
            /** @default true */
            learn: boolean;
            /**
             * @default none
             * @enum {unknown}
             */
            learn_delay: "none" | "window";
            /** @default refuse */
            on_unseen: string;
            /** @default 0 */
            floor: number;
            /**
             * @default shadow
             * @enum {unknown}
             */
            on_alarm: "none" | "shadow";
            /**
             * @default closed
             * @enum {unknown}
             */
            labels: "closed" | "open";
            /** @default 400 */
            retention_days: number;
            /** @default 30 */
            context_days: number;
        };
        /**
         * SettingsPatch
         * @description Settings to change; those left out stay as they are.
         *
         *         Attributes
         *         ----------
         *         reason : str
         *             Why, for the audit trail.
         */
        SettingsPatch: {
            /** @enum {unknown} */
            mode?: "live" | "paused" | "shadow";
            /** @description Number of a version. */
            version?: number;
            /** @description Seconds; at most ten years. */
            outcome_due_s?: number;
            learn?: boolean;
            /** @enum {unknown} */
            learn_delay?: "none" | "window";
            on_unseen?: string;
            floor?: number;
            /** @enum {unknown} */
            on_alarm?: "none" | "shadow";
            /** @enum {unknown} */
            labels?: "closed" | "open";
            retention_days?: number;
            context_days?: number;
            /** @default  */
            reason: string;
        };
        /**
         * RollbackRequest
         * @description Back to an older version, which continues from what it had learned.
         */
        RollbackRequest: {
            /** @description Number of a version. */
            to: number;
            /** @default  */
            reason: string;
        };
        /**
         * Page[VersionView]
         * @description A part of a list; ``next`` is the cursor of the part that follows, or null.
         */
        Page_VersionView_: {
            items: components["schemas"]["VersionView"][];
            /** @default null */
            next: string | null;
        };
        /**
         * VersionView
         * @description A version, which never changes.
         */
        VersionView: {
            policy: string;
            version: number;
            sha256: string;
            bytes: number;
            note: string;
            despite: string[];
            who: string;
            at: string;
        };
        /**
         * StateQuery
         * @description A state by its label or raw value, or a row as a JSON object.
         */
        StateQuery: {
            state: string;
        };
        /**
         * MonitorQuery
         * @description The period of the monitor; the last 30 days by default.
         *
         *         Attributes
         *         ----------
         *         rows : int
         *             How many states and actions with evidence of a change to list, the most first.
         */
        MonitorQuery: {
            /** @default null */
            from: string | null;
            /** @default null */
            to: string | null;
            /**
             * @default day
             * @enum {unknown}
             */
            by: "day";
            /** @default 10 */
            rows: number;
        };
        /**
         * MonitorView
         * @description What there is to see of a policy.
         *
         *         Attributes
         *         ----------
         *         policy_version : int
         *             The version in use, which `change`, `rule`, `wanted` and the weak decisions are about.
         *         measure : str
         *             What ``wanted`` is the mean of.
         *         decisions, weak_decisions : int
         *             Decisions of the version, and those that rested on little evidence.
         *         batches : list
         *             All outcomes of the version in batches of equal size, the oldest first.
         */
        MonitorView: {
            policy: string;
            policy_version: number;
            measure: string;
            level: number;
            decisions: number;
            weak_decisions: number;
            change: components["schemas"]["ChangeView"];
            rule: components["schemas"]["RuleCheck"];
            days: components["schemas"]["DayView"][];
            /** @default [] */
            batches: components["schemas"]["BatchView"][];
            /** @default null */
            answer_time: components["schemas"]["AnswerTime"] | null;
        };
        /**
         * ChangeView
         * @description Whether the world has changed.
         *
         *         Attributes
         *         ----------
         *         alarm : bool
         *         evidence : float
         *             log10; an alarm is raised where it reaches that of the run length.
         *         run_length : float
         *             Outcomes per false alarm, on average and at least.
         *         outcomes : int
         *             Outcomes since the test started.
         *         since : str, optional
         *             Most probable time of the change, if there is one.
         *         rows : list
         *             Where the evidence comes from, the most first.
         */
        ChangeView: {
            alarm: boolean;
            evidence: number;
            run_length: number;
            outcomes: number;
            since: string | null;
            rows: components["schemas"]["ChangedRow"][];
        };
        /**
         * ChangedRow
         * @description Evidence of a change in one state after one action; see `ChangeView`.
         *
         *         Attributes
         *         ----------
         *         log : dict
         *             Records of the log by next state.
         *         lately : dict
         *             Shares of next states among the outcomes of late, which count the more the newer they are.
         */
        ChangedRow: {
            state: string;
            action: string;
            evidence: number;
            since: string;
            outcomes: number;
            /** @default {} */
            log: {
                [key: string]: number;
            };
            /** @default {} */
            lately: {
                [key: string]: number;
            };
        };
        /**
         * RuleCheck
         * @description Whether decisions are what the rule says.
         *
         *         Attributes
         *         ----------
         *         chi_square, degrees : float, int
         *             Pearson's statistic over states and actions that are expected at least five times, and its
         *             degrees of freedom.
         *         rare_observed, rare_expected : int, float
         *             Decisions for the other actions, of all states together.
         *         p_value : float
         *             Probability of such a difference, or a larger one, if decisions follow the rule; at most,
         *             since rules that change over time vary less than Pearson's statistic assumes.
         */
        RuleCheck: {
            chi_square: number;
            degrees: number;
            rare_observed: number;
            rare_expected: number;
            p_value: number;
            actions: components["schemas"]["ActionFrequency"][];
        };
        /**
         * ActionFrequency
         * @description How often an action was decided, and the sum of its probabilities.
         */
        ActionFrequency: {
            action: string;
            observed: number;
            expected: number;
        };
        /**
         * DayView
         * @description One day, in UTC: its decisions, of all versions, and outcomes of the version in use.
         */
        DayView: {
            day: string;
            actions: components["schemas"]["ActionCounts"][];
            /** @default null */
            wanted: components["schemas"]["WantedView"] | null;
        };
        /**
         * ActionCounts
         * @description Decisions for an action by how they ended.
         */
        ActionCounts: {
            action: string;
            decisions: number;
            in_time: number;
            late: number;
            missing: number;
            cancelled: number;
            open: number;
        };
        /**
         * WantedView
         * @description Mean utility of the outcomes of a day, or of a batch.
         *
         *         Attributes
         *         ----------
         *         outcomes : int
         *             Outcomes that came then, in time.
         *         observed : float
         *         predicted, low, high : float
         *             What the log of the version predicts for the states and actions of these outcomes, with
         *             its interval.
         */
        WantedView: {
            outcomes: number;
            observed: number;
            predicted: number;
            low: number;
            high: number;
        };
        /**
         * BatchView
         * @description Outcomes that came one after another.
         *
         *         Attributes
         *         ----------
         *         since, until : str
         *             When the first and the last of them came.
         *         evidence : float
         *             Evidence of a change after the last of them; see `ChangeView`.
         */
        BatchView: {
            since: string;
            until: string;
            outcomes: number;
            evidence: number;
            /** @default null */
            wanted: components["schemas"]["WantedView"] | null;
        };
        /**
         * AnswerTime
         * @description How long decisions took, of all policies since the service was started, in seconds.
         */
        AnswerTime: {
            decisions: number;
            median: number;
            percentile_99: number;
        };
        /**
         * PeriodQuery
         * @description Decisions from a time up to another one.
         */
        PeriodQuery: {
            /** @default null */
            since: string | null;
            /** @default null */
            until: string | null;
        };
        /**
         * JobView
         * @description Work in a process of its own.
         */
        JobView: {
            id: string;
            /** @enum {unknown} */
            kind: "comparison" | "evaluate" | "export" | "learn" | "probe" | "replay" | "summarise" | "verdict";
            /** @enum {unknown} */
            state: "done" | "failed" | "queued" | "running" | "stopped";
            who: string;
            created: string;
            /** @default null */
            progress: components["schemas"]["ProgressView"] | null;
            /** @default null */
            partial: {
                [key: string]: unknown;
            } | null;
            /** @default null */
            result: {
                [key: string]: unknown;
            } | null;
            /** @default null */
            problem: {
                [key: string]: unknown;
            } | null;
            /** @default null */
            finished: string | null;
        };
        /**
         * ProgressView
         * @description How far a job is.
         */
        ProgressView: {
            done: number;
            /** @default null */
            of: number | null;
        };
        /**
         * ReplayRequest
         * @description Replay up to an event; to the last one by default.
         */
        ReplayRequest: {
            /** @default null */
            to_seq: number | null;
        };
        /**
         * EvaluationRequest
         * @description Evaluate a version on the decisions that were made, or on an uploaded log.
         *
         *         Attributes
         *         ----------
         *         log : str, optional
         *             Id of an uploaded log; the decisions of the policy by default.
         *         version : int, optional
         *             The version in use by default.
         *         samples : int
         *             Number of models sampled; the default and the limit are the library's.
         */
        EvaluationRequest: {
            /** @default null */
            log: string | null;
            /** @default null */
            version: number | null;
            /** @default 2000 */
            samples: number;
            /** @default null */
            horizon: number | null;
            /** @default 0 */
            seed: number;
        };
        /**
         * LearnRequest
         * @description Make a new version from the counts of a version and of decisions since ``since``.
         *
         *         By default these are the decisions since the version was added, so that none counts twice.
         */
        LearnRequest: {
            /** @default null */
            version: number | null;
            /** @default null */
            since: string | null;
            /** @default null */
            until: string | null;
            /** @default  */
            note: string;
        };
        /**
         * Page[JobView]
         * @description A part of a list; ``next`` is the cursor of the part that follows, or null.
         */
        Page_JobView_: {
            items: components["schemas"]["JobView"][];
            /** @default null */
            next: string | null;
        };
        /**
         * SummaryRequest
         * @description Describe an uploaded log; with ``columns`` read it as `pastwise learn` would with these.
         */
        SummaryRequest: {
            /** @default null */
            columns: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * UploadQuery
         * @description What an uploaded log is called.
         */
        UploadQuery: {
            /** @default  */
            name: string;
        };
        /**
         * LogView
         * @description An uploaded log.
         */
        LogView: {
            id: string;
            name: string;
            kind: string;
            bytes: number;
            sha256: string;
            at: string;
        };
        /**
         * Page[LogView]
         * @description A part of a list; ``next`` is the cursor of the part that follows, or null.
         */
        Page_LogView_: {
            items: components["schemas"]["LogView"][];
            /** @default null */
            next: string | null;
        };
        /**
         * TokenRequest
         * @description A token to make.
         *
         *         Attributes
         *         ----------
         *         policies : list of str, optional
         *             Policies that the token is bound to; all by default.
         *         expires : str, optional
         *             RFC 3339; never by default.
         *         needs_key : bool
         *             Decisions with this token need an idempotency key.
         */
        TokenRequest: {
            name: string;
            roles: ("admin" | "decide" | "deploy" | "edit" | "outcome" | "read")[];
            /** @default null */
            policies: string[] | null;
            /** @default null */
            expires: string | null;
            /** @default false */
            needs_key: boolean;
        };
        /**
         * NewToken
         * @description A token with its secret, which is shown once.
         */
        NewToken: {
            id: string;
            name: string;
            roles: ("admin" | "decide" | "deploy" | "edit" | "outcome" | "read")[];
            policies: string[] | null;
            created: string;
            used: string | null;
            expires: string | null;
            needs_key: boolean;
            token: string;
        };
        /**
         * Page[TokenView]
         * @description A part of a list; ``next`` is the cursor of the part that follows, or null.
         */
        Page_TokenView_: {
            items: components["schemas"]["TokenView"][];
            /** @default null */
            next: string | null;
        };
        /**
         * TokenView
         * @description A token without its secret.
         */
        TokenView: {
            id: string;
            name: string;
            roles: ("admin" | "decide" | "deploy" | "edit" | "outcome" | "read")[];
            policies: string[] | null;
            created: string;
            used: string | null;
            expires: string | null;
            needs_key: boolean;
        };
        /**
         * Page[AuditView]
         * @description A part of a list; ``next`` is the cursor of the part that follows, or null.
         */
        Page_AuditView_: {
            items: components["schemas"]["AuditView"][];
            /** @default null */
            next: string | null;
        };
        /**
         * AuditView
         * @description One change: who changed what, and how.
         */
        AuditView: {
            number: number;
            at: string;
            who: string;
            what: string;
            subject: string;
            before: string | null;
            after: string | null;
        };
        /**
         * HealthView
         * @description Whether the service can answer, with its checks by name.
         */
        HealthView: {
            /** @enum {unknown} */
            status: "failing" | "ok" | "starting" | "stopping";
            /** @default {} */
            checks: {
                [key: string]: boolean;
            };
        };
        /**
         * SessionRequest
         * @description The key of the address that `pastwise workbench` printed; it works once.
         */
        SessionRequest: {
            key: string;
        };
        /**
         * SessionView
         * @description What this workbench is, and what a page shows first.
         *
         *         Attributes
         *         ----------
         *         root : str
         *             Folder that paths of logs must lie in.
         *         data : str
         *             Folder of what is saved.
         *         project : str, optional
         *             The log that the workbench was opened on.
         *         methods : list of str
         *             Names of the methods that learn from a log.
         *         samples : list of str
         *             Samples that can be opened in this installation.
         *         projects : page
         *             The logs, as ``GET /v1/projects`` lists them.
         *         log, counts : optional
         *             The log that was named, or that the workbench was opened on, and its counts.
         */
        SessionView: {
            version: string;
            root: string;
            project: string | null;
            methods: string[];
            samples: ("migraine" | "thermostat")[];
            projects: components["schemas"]["Page_ProjectSummary_"];
            log: components["schemas"]["ProjectView"] | null;
            counts: components["schemas"]["CountsView"] | null;
            data: string;
        };
        /**
         * Page[ProjectSummary]
         * @description A part of a list; ``next`` is the cursor of the part that follows, or null.
         */
        Page_ProjectSummary_: {
            items: components["schemas"]["ProjectSummary"][];
            /** @default null */
            next: string | null;
        };
        /**
         * ProjectSummary
         * @description A log in a list.
         *
         *         Attributes
         *         ----------
         *         origin : str
         *             Where the log comes from; the copy of an upload is removed with the log.
         *         drafts : int
         *             Number of saved policies.
         *         counts : str, optional
         *             Id of the counts, so that a page can ask for them at once; null before the mapping.
         *         goal : str, optional
         *             The goal of the draft that was saved last, as a sentence.
         *         verdict, gain : optional
         *             The last verdict on that draft against what was done, and the interval of the difference.
         */
        ProjectSummary: {
            id: string;
            name: string;
            kind: string;
            rows: number | null;
            states: number | null;
            actions: number | null;
            counts: string | null;
            goal: string | null;
            verdict: ("better" | "cannot tell" | "worse") | null;
            gain: [
                number,
                number
            ] | null;
            deployed: components["schemas"]["DeployedView"] | null;
            changed: string;
            findings: components["schemas"]["FindingSummary"][];
            /** @enum {unknown} */
            origin: "learner" | "path" | "sample" | "upload";
            drafts: number;
            jobs: components["schemas"]["JobSummary"][];
        };
        /**
         * DeployedView
         * @description A policy of the service that a draft of the project was added to.
         */
        DeployedView: {
            policy: string;
            /** @enum {unknown} */
            mode: "live" | "paused" | "shadow";
            alarm: boolean;
            version: number | null;
        };
        /**
         * FindingSummary
         * @description A finding in one line.
         */
        FindingSummary: {
            code: string;
            /** @enum {unknown} */
            severity: "blocks-verdict" | "note" | "warn";
            message: string;
        };
        /**
         * JobSummary
         * @description Work on a log that is under way.
         *
         *         Attributes
         *         ----------
         *         done, of : int
         *             How far it is: sampled models, or parts.
         *         so_far : str, optional
         *             What a verdict says by the models sampled so far.
         */
        JobSummary: {
            id: string;
            /** @enum {unknown} */
            kind: "comparison" | "evaluate" | "export" | "learn" | "probe" | "replay" | "summarise" | "verdict";
            done: number;
            of: number | null;
            so_far: ("better" | "cannot tell" | "worse") | null;
        };
        /**
         * ProjectView
         * @description A log, its columns, and what has been made of it.
         *
         *         Attributes
         *         ----------
         *         rows : int, optional
         *             Null where the log is too long to be counted at once.
         *         sampled : int, optional
         *             Rows that the description of the columns rests on.
         *         mapping : Mapping, optional
         *             The mapping that the counts were made by; null before that.
         *         counts : str, optional
         *             Id of the counts.
         *         source : str
         *             Where the log comes from, for people.
         *         policies : list of str
         *             Names of the deployed policies that were made of it, the oldest first.
         */
        ProjectView: {
            id: string;
            name: string;
            kind: string;
            bytes: number;
            rows: number | null;
            sampled: number | null;
            source: string;
            columns: components["schemas"]["ColumnView"][];
            guess: components["schemas"]["GuessView"];
            mapping: components["schemas"]["Mapping"] | null;
            counts: string | null;
            order: components["schemas"]["OrderView"] | null;
            validation: components["schemas"]["ValidationView"] | null;
            drafts: components["schemas"]["DraftSummary"][];
            policies: string[];
            changed: string;
            etag: string;
        };
        /**
         * ColumnView
         * @description A column of a table.
         *
         *         Attributes
         *         ----------
         *         top : list of pairs
         *             The most frequent values, with the number of rows that have them.
         */
        ColumnView: {
            name: string;
            /** @enum {unknown} */
            type: "boolean" | "number" | "text" | "time";
            distinct: number;
            missing: number;
            top: [
                string,
                number
            ][];
            histogram: components["schemas"]["HistogramView"] | null;
            min: number | string | null;
            max: number | string | null;
        };
        /**
         * HistogramView
         * @description Numbers of values between neighbouring edges.
         */
        HistogramView: {
            edges: number[];
            counts: number[];
        };
        /**
         * GuessView
         * @description Which columns probably hold what, and why that was guessed.
         *
         *         ``binned`` are columns of the state that hold many different numbers.
         */
        GuessView: {
            state: string[];
            action: string[];
            next_state: string[];
            episode: string | null;
            time: string | null;
            confidence: number;
            why: string;
            /** @default null */
            outcome: string | null;
            /** @default [] */
            binned: string[];
        };
        /**
         * Mapping
         * @description Which columns hold what: the parameters of `Columns.of`.
         *
         *         Attributes
         *         ----------
         *         terminal : list
         *             Labels as JSON has them; a list stands for a tuple.
         *         bins : "auto", or by column a number of bins of equal frequency, edges, or "auto"
         */
        Mapping: {
            /** @default [] */
            state: string[];
            /** @default [] */
            action: string[];
            /** @default [] */
            next_state: string[];
            /** @default null */
            episode: string | null;
            /** @default null */
            time: string | null;
            /** @default null */
            max_gap: number | string | null;
            /** @default [] */
            terminal: unknown[];
            /** @default {} */
            bins: "auto" | {
                [key: string]: number | "auto" | number[];
            };
            /** @default [] */
            features: string[];
            /** @default [] */
            next_features: string[];
            /** @default 200 */
            max_states: number;
            /** @default null */
            count: string | null;
            /** @default null */
            weight: string | null;
            /** @default null */
            task: string | null;
            /** @default null */
            age: string | null;
            /** @default null */
            half_life: number | string | null;
            /** @default null */
            propensity: string | null;
            /** @default null */
            reward: string | null;
            /** @default null */
            outcome: string | null;
            /** @default true */
            text_labels: boolean;
        };
        /**
         * OrderView
         * @description The order in which states and actions are shown.
         */
        OrderView: {
            states: string[];
            actions: string[];
        };
        /**
         * ValidationView
         * @description What is usable of a log by a mapping.
         *
         *         Attributes
         *         ----------
         *         used, ends : int
         *             Rows that are transitions, and rows that are the last of their episode.
         *         bins : dict
         *             Edges by column, also of bins whose number was given, or chosen by the log.
         */
        ValidationView: {
            rows: number;
            used: number;
            ends: number;
            left_out: components["schemas"]["LeftOutView"][];
            transitions: number;
            states: components["schemas"]["StateCount"][];
            actions: components["schemas"]["ActionCount"][];
            findings: components["schemas"]["FindingView"][];
            /** @default null */
            sampled: number | null;
            /** @default {} */
            bins: {
                [key: string]: number[];
            };
        };
        /**
         * LeftOutView
         * @description Rows that are not used, for one reason: the code of a finding.
         */
        LeftOutView: {
            code: string;
            rows: number;
        };
        /**
         * StateCount
         * @description A state with its records, and their share of all.
         */
        StateCount: {
            key: string;
            records: number;
            share: number;
            terminal: boolean;
        };
        /**
         * ActionCount
         * @description An action with its records.
         */
        ActionCount: {
            key: string;
            records: number;
        };
        /**
         * FindingView
         * @description Something in a log that its owner should know.
         */
        FindingView: {
            code: string;
            /** @enum {unknown} */
            severity: "blocks-verdict" | "note" | "warn";
            message: string;
            fix: string;
            rows: number;
            examples: {
                [key: string]: unknown;
            }[];
            remedies: components["schemas"]["RemedyView"][];
        };
        /**
         * RemedyView
         * @description What would help: members of the mapping to change.
         */
        RemedyView: {
            label: string;
            patch: {
                [key: string]: unknown;
            };
        };
        /**
         * DraftSummary
         * @description A saved policy in a list; ``deployed`` as in `DraftView`.
         */
        DraftSummary: {
            id: string;
            name: string;
            goal: {
                [key: string]: unknown;
            };
            sentence: string;
            method: string;
            counts: string;
            changed: string;
            deployed: string[];
        };
        /**
         * CountsView
         * @description Counts of a log, with all that a page needs to compute TL's rule.
         *
         *         Attributes
         *         ----------
         *         fields : list
         *             Fields of a state, where it has several.
         *         transitions : list, optional
         *             Index of the state, of the action and of the next state, in the order of states and actions
         *             here; number of records, sum of their weights and of the squares of these. Null where there
         *             are too many.
         *         weak : float
         *             Total similarity below which a state is weak.
         */
        CountsView: {
            id: string;
            project: string;
            records: number;
            states: components["schemas"]["CountedState"][];
            actions: string[];
            fields: components["schemas"]["CountsField"][];
            transitions: [
                number,
                number,
                number,
                number,
                number,
                number
            ][] | null;
            smallest_probability: components["schemas"]["SmallestProbability"];
            weak: number;
            has_rewards: boolean;
            has_episodes: boolean;
            mapping: components["schemas"]["Mapping"] | null;
        };
        /**
         * CountedState
         * @description A state with the number of decisions that were made in it.
         */
        CountedState: {
            key: string;
            records: number;
            terminal: boolean;
        };
        /**
         * CountsField
         * @description A field of states that have several: its values, and the index of each state's value.
         *
         *         The index is -1 for a state that does not have the field, such as the outcome of a decision.
         */
        CountsField: {
            name: string;
            values: string[];
            of_state: number[];
        };
        /**
         * SmallestProbability
         * @description Default of the probability of each state that is not preferred.
         *
         *         ``default``, or ``others_share`` divided by their number where that is smaller.
         */
        SmallestProbability: {
            default: number;
            others_share: number;
        };
        /**
         * SessionQuery
         * @description What a page shows first, so that one request is enough for it.
         *
         *         Attributes
         *         ----------
         *         log : str, optional
         *             Id of the log that the page shows.
         *         counts : bool
         *             Whether it shows counts of that log.
         */
        SessionQuery: {
            /** @default null */
            log: string | null;
            /** @default false */
            counts: boolean;
        };
        /**
         * PreviewRequest
         * @description A goal and a method; nothing is stored.
         *
         *         Attributes
         *         ----------
         *         method : str
         *             Its name, with hyper-parameters as in ``TL(prior_count=5)``.
         */
        PreviewRequest: {
            goal: {
                [key: string]: unknown;
            };
            /** @default TL */
            method: string;
            want?: components["schemas"]["Wanted"];
        };
        /**
         * Wanted
         * @description What a preview contains.
         *
         *         Attributes
         *         ----------
         *         explain : pair, optional
         *             Keys of a state and of an action.
         *         rows : int
         *             Rows of the log to show behind each piece of evidence of the explanation.
         *         ranges : bool
         *             The 90 % range of each probability of the rule, where the method has one.
         *         past : bool
         *             How much the policy depends on who left the log; it takes two more plans.
         */
        Wanted: {
            rule?: components["schemas"]["WantedRule"];
            /** @default true */
            support: boolean;
            /** @default false */
            ranges: boolean;
            /** @default false */
            visits: boolean;
            /** @default false */
            overview: boolean;
            /** @default true */
            ideal: boolean;
            /** @default null */
            explain: [
                string,
                string
            ] | null;
            /** @default 0 */
            rows: number;
            /** @default null */
            verdict: components["schemas"]["WantedVerdict"] | null;
            /** @default false */
            past: boolean;
        };
        /**
         * WantedRule
         * @description Which rows of the rule: some states by key, or the first ones of an order.
         */
        WantedRule: {
            /** @default null */
            states: string[] | null;
            /** @default null */
            first: number | null;
            /**
             * @default order
             * @enum {unknown}
             */
            sort: "change" | "order" | "records" | "visits";
        };
        /**
         * WantedVerdict
         * @description A verdict from so many sampled models.
         *
         *         Attributes
         *         ----------
         *         judge : dict, optional
         *             Another goal to judge the policy by; its own by default.
         *         alternatives : bool
         *             Compare with what other methods learn for the same goal as well.
         */
        WantedVerdict: {
            /** @default 200 */
            samples: number;
            /** @default null */
            judge: {
                [key: string]: unknown;
            } | null;
            /** @default false */
            alternatives: boolean;
        };
        /**
         * PreviewView
         * @description A policy for a goal.
         *
         *         Attributes
         *         ----------
         *         key : str
         *             Names goal, method and counts; equal keys mean equal rules.
         *         ms : dict
         *             Milliseconds that each part took.
         *         ideal : list, optional
         *             Probability of each next state by the goal, in the order of the counts; null where that
         *             depends on more than the next state, or where it is not wanted.
         *         overview : OverviewTable, optional
         *             Of all states, not only of those shown.
         *         forbidden : list of pairs
         *             Index of the state shown, and of the action.
         *         weak : list
         *             Indices of states shown whose rule rests on next to nothing.
         *         past : PastView, optional
         *             Null where it is not wanted, where the method does not infer how good the past was, and in
         *             large systems.
         *         most_states : int
         *             Most states for which there is a verdict; with more, ``verdict`` is null.
         */
        PreviewView: {
            key: string;
            sentence: string;
            method: string;
            ms: {
                [key: string]: number;
            };
            rule: components["schemas"]["RuleTable"];
            behaviour: components["schemas"]["BehaviourView"];
            support: components["schemas"]["SupportTable"] | null;
            ranges: components["schemas"]["RangesView"] | null;
            visits: components["schemas"]["VisitsView"] | null;
            overview: components["schemas"]["OverviewTable"] | null;
            ideal: number[] | null;
            forbidden: [
                number,
                number
            ][];
            weak: number[];
            warnings: string[];
            explain: components["schemas"]["ExplanationView"] | null;
            verdict: components["schemas"]["VerdictView"] | null;
            past: components["schemas"]["PastView"] | null;
            most_states: number;
        };
        /**
         * RuleTable
         * @description Probabilities ``p[state][action]`` of the states shown; ``of`` counts all states.
         */
        RuleTable: {
            states: string[];
            actions: string[];
            p: number[][];
            of: number;
        };
        /**
         * BehaviourView
         * @description What was done, in the states of the rule.
         */
        BehaviourView: {
            p: number[][];
        };
        /**
         * SupportTable
         * @description What the rule rests on, in the states of the rule.
         */
        SupportTable: {
            records: number[];
            similarity: number[];
            effective: number[];
            prior_share: number[];
        };
        /**
         * RangesView
         * @description 90 % ranges of the probabilities of the rule.
         */
        RangesView: {
            low: number[][];
            high: number[][];
        };
        /**
         * VisitsView
         * @description Share of time in each state of the rule: as it was done, and by the rule.
         */
        VisitsView: {
            before: number[];
            after: number[];
        };
        /**
         * OverviewTable
         * @description A line on every state, in the order of the counts: for pages that cannot hold the rule.
         *
         *         Attributes
         *         ----------
         *         does, did : list of int
         *             Likeliest action, and the one that was done most (-1: the state has no record).
         *         chance : list of float
         *             Probability of the likeliest action.
         *         seen : list of int
         *             Records of the likeliest action.
         *         change : list of float
         *             Total variation between the rule and what was done.
         *         visits : list of float, optional
         *             Share of time by the rule.
         *         weak : list of int
         *             Places of states whose rule rests on next to nothing.
         */
        OverviewTable: {
            does: number[];
            chance: number[];
            seen: number[];
            did: number[];
            change: number[];
            visits: number[] | null;
            weak: number[];
        };
        /**
         * ExplanationView
         * @description Why the rule of a state is what it is.
         *
         *         Attributes
         *         ----------
         *         sentence : str
         *             The explanation in words; of the action, where one is named.
         *         without_rows : str, optional
         *             Why there are no rows of the log, where it is no longer as it was.
         */
        ExplanationView: {
            state: string;
            action: string | null;
            method: string;
            measure: string | null;
            horizon: number | null;
            actions: {
                [key: string]: components["schemas"]["ReasonView"];
            };
            sentence: string;
            /** @default null */
            without_rows: string | null;
        };
        /**
         * ReasonView
         * @description Why an action has its probability; ``parts`` add up to it where ``adds_up``.
         */
        ReasonView: {
            probability: number;
            is_allowed: boolean;
            parts: {
                [key: string]: number | null;
            };
            adds_up: boolean;
            evidence: components["schemas"]["EvidenceView"][];
            value: components["schemas"]["ActionValueView"] | null;
            /** @default null */
            episodes: number | null;
            /** @default null */
            low: number | null;
            /** @default null */
            high: number | null;
        };
        /**
         * EvidenceView
         * @description Past transitions to one next state, and what they carry of a probability.
         */
        EvidenceView: {
            next_state: string;
            records: number;
            similarity: number;
            share: number;
            /** @default [] */
            rows: components["schemas"]["EvidenceRow"][];
        };
        /**
         * EvidenceRow
         * @description A row of the log behind a piece of evidence.
         */
        EvidenceRow: {
            row: number;
            /** @default null */
            episode: string | null;
            /** @default null */
            time: string | null;
        };
        /**
         * ActionValueView
         * @description Value of the rule with an action always taken in a state, and its difference to the rule.
         */
        ActionValueView: {
            mean: number;
            deviation: number;
            difference: number;
            difference_deviation: number;
        };
        /**
         * PastView
         * @description How many decisions depend on how good the past was for the goal, which the log hardly shows.
         *
         *         Attributes
         *         ----------
         *         skilled, opposed : float
         *             Share of decisions that would be others after people who had this goal, and after people
         *             who had the opposite one.
         *         matters : bool
         *             Whether to find out who left the log.
         */
        PastView: {
            skilled: number;
            opposed: number;
            matters: boolean;
        };
        /**
         * ProjectRequest
         * @description A log to open: a path below the root, a sample, or the id of an uploaded log.
         */
        ProjectRequest: {
            /** @default null */
            path: string | null;
            /** @default null */
            sample: ("migraine" | "thermostat") | null;
            /** @default null */
            log: string | null;
            /** @default null */
            name: string | null;
        };
        /**
         * RowsQuery
         * @description Which rows of a log.
         *
         *         Attributes
         *         ----------
         *         mapping : str, optional
         *             A mapping as JSON, to see the next states by it; the project's by default.
         */
        RowsQuery: {
            /** @default 0 */
            offset: number;
            /** @default 100 */
            limit: number;
            /** @default null */
            mapping: string | null;
        };
        /**
         * RowsView
         * @description Rows of a log as text, and the next state of each.
         */
        RowsView: {
            columns: string[];
            rows: (string | null)[][];
            then: (string | components["schemas"]["BreakView"] | null)[];
            offset: number;
            of: number | null;
        };
        /**
         * BreakView
         * @description Why a row has no next state: the code of a finding, and the length of a gap.
         */
        BreakView: {
            break: string;
            /** @default null */
            by: number | string | null;
        };
        /**
         * DryRunQuery
         * @description Whether to look only.
         *
         *         Attributes
         *         ----------
         *         first : int
         *             Rows that a dry run reads; of the default number a page has the answer in about a second.
         */
        DryRunQuery: {
            /** @default false */
            dry_run: boolean;
            /** @default 100000 */
            first: number;
        };
        /**
         * MappingView
         * @description What a mapping makes of a log; ``counts`` is null in a dry run.
         */
        MappingView: {
            counts: string | null;
            validation: components["schemas"]["ValidationView"];
        };
        /**
         * OrderRequest
         * @description The order in which states and actions are shown.
         */
        OrderRequest: {
            states: string[];
            actions: string[];
        };
        /**
         * ProbeRequest
         * @description Ask again with more columns in the state.
         *
         *         Attributes
         *         ----------
         *         columns : list of str
         *             Columns that are added, each on its own.
         */
        ProbeRequest: {
            columns: string[];
            goal: {
                [key: string]: unknown;
            };
            /** @default TL */
            method: string;
            /** @default {} */
            bins: {
                [key: string]: number | "auto" | number[];
            };
            /** @default 400 */
            samples: number;
        };
        /**
         * DraftRequest
         * @description A policy to save.
         */
        DraftRequest: {
            name: string;
            goal: {
                [key: string]: unknown;
            };
            /** @default TL */
            method: string;
            /** @default  */
            note: string;
        };
        /**
         * DraftView
         * @description A saved policy.
         *
         *         Attributes
         *         ----------
         *         sentence : str
         *             The goal in words.
         *         verdicts : list
         *             Every verdict so far, the oldest first.
         *         running : list
         *             Verdicts under way.
         *         deployed : list of str
         *             Versions that are this policy, such as ``room@3``; another goal or method is another policy.
         */
        DraftView: {
            id: string;
            project: string;
            counts: string;
            name: string;
            goal: {
                [key: string]: unknown;
            };
            sentence: string;
            method: string;
            note: string;
            created: string;
            changed: string;
            etag: string;
            verdicts: components["schemas"]["KeptVerdict"][];
            running: components["schemas"]["RunningVerdict"][];
            deployed: string[];
        };
        /**
         * KeptVerdict
         * @description A verdict on a draft, against what was done.
         *
         *         Attributes
         *         ----------
         *         judge : str
         *             The goal that it was judged by, in words.
         *         goal : dict, optional
         *             The same where it is not the draft's own goal.
         *         level : float
         *             Probability of the interval of the difference.
         *         overruled : bool
         *             Whether the comparison is not fair.
         *         objections : list
         *             Why the evaluation says so; findings of the log are another reason.
         */
        KeptVerdict: {
            job: string;
            at: string;
            /** @enum {unknown} */
            verdict: "better" | "cannot tell" | "worse";
            difference: [
                number,
                number
            ] | null;
            alarm: boolean;
            samples: number;
            judge: string;
            /** @default null */
            goal: {
                [key: string]: unknown;
            } | null;
            /** @default 0.9 */
            level: number;
            /** @default false */
            overruled: boolean;
            /** @default [] */
            objections: components["schemas"]["ObjectionView"][];
        };
        /**
         * RunningVerdict
         * @description A job that judges a draft at the moment, by its own goal or by another one.
         */
        RunningVerdict: {
            job: string;
            goal: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * DraftPatch
         * @description Members of a draft to change; those left out stay as they are.
         */
        DraftPatch: {
            name?: string;
            goal?: {
                [key: string]: unknown;
            };
            method?: string;
            note?: string;
        };
        /**
         * ExplainQuery
         * @description A state by its key, an action, and how many rows of the log to show behind each piece.
         */
        ExplainQuery: {
            state: string;
            /** @default null */
            action: string | null;
            /** @default 4 */
            rows: number;
        };
        /**
         * DraftEvaluationRequest
         * @description Evaluate a draft.
         *
         *         Attributes
         *         ----------
         *         judge : dict, optional
         *             Another goal to judge it by; its own by default.
         *         importance : bool
         *             Second opinions from the episodes of the log as well; they are by the draft's own goal.
         */
        DraftEvaluationRequest: {
            /** @default null */
            judge: {
                [key: string]: unknown;
            } | null;
            /** @default null */
            horizon: number | null;
            /** @default 2000 */
            samples: number;
            /** @default 0 */
            seed: number;
            /** @default false */
            importance: boolean;
        };
        /**
         * ComparisonRequest
         * @description Judge drafts of one log by goals.
         *
         *         Attributes
         *         ----------
         *         goals : list, optional
         *             By default the goals of the drafts.
         */
        ComparisonRequest: {
            drafts: string[];
            /** @default [] */
            goals: {
                [key: string]: unknown;
            }[];
            /** @default 1000 */
            samples: number;
            /** @default 0 */
            seed: number;
        };
        /**
         * VersionQuery
         * @description What is said about an uploaded policy file.
         *
         *         Attributes
         *         ----------
         *         despite : str
         *             Objections that were overruled, separated by commas, such as ``alarm``.
         *         seed : str, optional
         *             32 hexadecimal digits; random by default.
         */
        VersionQuery: {
            /** @default  */
            note: string;
            /** @default  */
            despite: string;
            /** @default null */
            seed: string | null;
        };
        /**
         * DraftVersionRequest
         * @description A draft to serve as the next version of a policy.
         *
         *         Attributes
         *         ----------
         *         despite : list of str
         *             Objections that were overruled, such as ``alarm``.
         */
        DraftVersionRequest: {
            draft: string;
            /** @default  */
            note: string;
            /** @default [] */
            despite: string[];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
