/** Where rules differ: total variation between the rows of a state. */

/** A rule of every state: probabilities, flat, state by state. */
export type Rows = ArrayLike<number>;

/** Total variation between two rules in a state, from 0 to 1. */
export function totalVariation(one: Rows, other: Rows, state: number, numActions: number): number {
  const start = state * numActions;
  let sum = 0;
  for (let cell = start; cell < start + numActions; cell += 1) {
    sum += Math.abs((one[cell] ?? 0) - (other[cell] ?? 0));
  }
  return sum / 2;
}

/** How far the farthest of the rules is from the first, in each state. */
export function farthest(rules: Rows[], numStates: number, numActions: number): Float64Array {
  const result = new Float64Array(numStates);
  const [first, ...others] = rules;
  if (first === undefined) {
    return result;
  }
  for (let state = 0; state < numStates; state += 1) {
    for (const other of others) {
      result[state] = Math.max(result[state]!, totalVariation(first, other, state, numActions));
    }
  }
  return result;
}

/** States in which some rule is farther from the first than a limit, in their order. */
export function differing(distances: ArrayLike<number>, limit: number): number[] {
  const states: number[] = [];
  for (let state = 0; state < distances.length; state += 1) {
    if (distances[state]! > limit) {
      states.push(state);
    }
  }
  return states;
}

/** The rows of some states of a flat table. */
export function rowsOf(table: Rows, states: number[], numActions: number): Float64Array {
  const result = new Float64Array(states.length * numActions);
  states.forEach((state, row) => {
    for (let action = 0; action < numActions; action += 1) {
      result[row * numActions + action] = table[state * numActions + action] ?? 0;
    }
  });
  return result;
}

/** The most probable action of a row. */
export function likeliest(table: Rows, row: number, numActions: number): number {
  let best = 0;
  for (let action = 1; action < numActions; action += 1) {
    if ((table[row * numActions + action] ?? 0) > (table[row * numActions + best] ?? 0)) {
      best = action;
    }
  }
  return best;
}
