// Requests at a fixed rate, whether or not the server keeps up (k6, open model).
//
// An iteration is two requests: a decision and its outcome. KIND says what the server is: `pastwise`,
// or `predict`, one that answers each of two requests by a prediction. Times are milliseconds.

import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';

const states = ['cold', 'cool', 'comfortable', 'warm', 'hot'];
const decide = new Trend('decide', true);
const outcome = new Trend('outcome', true);
const failed = new Counter('failed');

export const options = {
  scenarios: {
    load: {
      executor: 'constant-arrival-rate',
      rate: Number(__ENV.RATE) / 2,
      timeUnit: '1s',
      duration: `${__ENV.SECONDS}s`,
      preAllocatedVUs: Number(__ENV.CONNECTIONS),
      maxVUs: 4 * Number(__ENV.CONNECTIONS),
      gracefulStop: '5s',
    },
  },
  summaryTrendStats: ['count', 'med', 'p(99)', 'p(99.9)', 'max'],
};

const headers = {
  'Content-Type': 'application/json',
  Authorization: `Bearer ${__ENV.TOKEN}`,
};

function anyState() {
  return states[Math.floor(Math.random() * states.length)];
}

function post(path, body, times, more) {
  const answer = http.post(__ENV.URL + path, JSON.stringify(body), { headers: { ...headers, ...more } });
  times.add(answer.timings.duration);
  if (answer.status < 200 || answer.status > 299) {
    failed.add(1);
  }
  return answer;
}

function decideAndReport() {
  const key = { 'Idempotency-Key': `${__ENV.RUN}-${__VU}-${__ITER}` };
  const answer = post('/v1/policies/thermostat/decide', { state: anyState() }, decide, key);
  if (answer.status === 201) {
    const id = answer.json('decision_id');
    post(`/v1/decisions/${id}/outcome`, { next_state: anyState() }, outcome, {});
  }
}

function predictTwice() {
  post('/predict', { state: anyState() }, decide, {});
  post('/predict', { state: anyState() }, outcome, {});
}

export default __ENV.KIND === 'pastwise' ? decideAndReport : predictTwice;

export function handleSummary(data) {
  return { [__ENV.RESULT]: JSON.stringify(data.metrics) };
}
