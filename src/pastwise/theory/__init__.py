"""The paper as pure functions, in its order.

    closed_loop  closed loops of a system and a policy, and the ideal one that states a goal
    fpd          the policy whose closed loop is nearest to the ideal: Fully Probabilistic Design
    similarity   how well a past transition serves the current goal
    learning     the decision rule learned from records weighted by their similarity
    exploration  when to deviate from the learned rule, and how

The paper is E. Zugarová and T. V. Guy, *Similarity-based transfer learning of decision policies*
(2020). Lines that begin with ``Paper:`` name the definition or equation that a function implements;
``docs/reference/equations.md`` lists them all.
"""
