// What the page knows, from the server's events. Pure: the same events give the same state.

const kept = 15 * 60 * 1000; // milliseconds of periods

export function empty() {
  return { view: null, rows: new Map(), order: [], detail: null, strip: strip(), agent: { ok: true }, version: 0 };
}

/** strip holds periods as columns for uPlot: times in ms, CPUs, milliseconds, counts. A null ends a line at a gap. */
export function strip() {
  return { length: 100e6, time: [], used: [], quota: [], tokens: [], lost: [], throttles: [], refills: [], last: 0 };
}

/** apply takes one event into the state. */
export function apply(state, name, data) {
  state.version++;
  switch (name) {
    case 'view':
      state.view = data;
      state.agent = { ok: true };
      state.rows = new Map((data.rows ?? []).map((row) => [row.id, row]));
      break;
    case 'change':
      if (state.view === null) return;
      change(state, data);
      break;
    case 'detail':
      detail(state, data);
      return;
    case 'periods':
      append(state.strip, data);
      return;
    case 'agent':
      state.agent = data;
      return;
  }
  state.order = [...state.rows.values()];
}

function change(state, data) {
  const { rows, gone, ...rest } = data;
  Object.assign(state.view, rest);
  for (const row of rows ?? []) state.rows.set(row.id, row);
  for (const id of gone ?? []) state.rows.delete(id);
}

function detail(state, data) {
  const { periods, ...rest } = data;
  state.detail = rest;
  if (periods?.end_ms?.length > 0) { // the backlog; after a stream that has ended, most of it is known
    if (periods.end_ms[0] > state.strip.last) state.strip = strip();
    append(state.strip, periods);
  }
}

/** append adds the periods that are new, and drops those that are too old, or all where the clock was set back. */
export function append(to, periods) {
  if (periods.end_ms?.at(-1) < to.last) Object.assign(to, strip());
  if (periods.period_ns > 0) to.length = periods.period_ns;
  const length = to.length / 1e6;
  for (const [i, end] of (periods.end_ms ?? []).entries()) {
    if (end <= to.last) continue;
    if (to.last > 0 && end - to.last > 1.5 * length) push(to, to.last + length, null, null, null, null, 0, 0);
    const quota = periods.quota_us[i], tokens = periods.tokens_us[i];
    push(to, end, periods.used_us[i] / 1e3 / length, quota < 0 ? null : quota / 1e3 / length, tokens < 0 ? null : tokens / 1e3,
      periods.lost_us[i] / 1e3, periods.throttles[i], periods.refills[i]);
    to.last = end;
  }
  let old = 0;
  while (old < to.time.length && to.time[old] < to.last - kept) old++;
  if (old > 0) for (const column of [to.time, to.used, to.quota, to.tokens, to.lost, to.throttles, to.refills]) column.splice(0, old);
}

function push(to, time, used, quota, tokens, lost, throttles, refills) {
  to.time.push(time);
  to.used.push(used);
  to.quota.push(quota);
  to.tokens.push(tokens);
  to.lost.push(lost);
  to.throttles.push(throttles);
  to.refills.push(refills);
}

/** above is what a container uses above its limit, in CPUs; a row without limit or use has none. */
const above = (row) => (row.limit_ns === null || row.used_cpus === null ? -1 : row.used_cpus - row.limit_ns / row.period_ns);

const title = (row) => `${row.name}\n${row.pod ?? ''}\n${row.id}`;

/** columns are what the table can be sorted by. `worst` is the server's order. */
export const columns = {
  worst: (a, b) => (b.lost_ns ?? -1) - (a.lost_ns ?? -1) || (b.throttled ?? -1) - (a.throttled ?? -1) || above(b) - above(a) || byName(a, b),
  name: byName,
  limit: by((row) => row.limit_ns === null ? null : row.limit_ns / row.period_ns),
  used: by((row) => row.used_cpus),
  peak: by((row) => row.peak_cpus),
  gauge: by((row) => row.limit_ns === null || row.used_cpus === null ? null : row.used_cpus * row.period_ns / row.limit_ns),
  lost: by((row) => row.lost_ns),
  throttled: by((row) => row.throttled),
  refills: by((row) => row.refills),
  tokens: by((row) => row.tokens_ns),
  quota: by((row) => row.quota_ns === null ? null : row.quota_ns / row.period_ns),
  burst: by((row) => row.burst_ns),
  why: (a, b) => compare(a.why, b.why) || byName(a, b),
};

function compare(a, b) { return a < b ? -1 : a > b ? 1 : 0; }
function byName(a, b) { return compare(title(a), title(b)); }

/** by sorts the largest first, and what is not measured last, whichever way round. */
function by(figure) {
  return (a, b, way = 1) => {
    const x = figure(a), y = figure(b);
    if (x === null || y === null) return (x === null) - (y === null) || byName(a, b);
    return way * (y - x) || byName(a, b);
  };
}

/** pick is the table's rows: those that have all the words, in order. */
export function pick(rows, words, column, reverse) {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = parts.length === 0 ? [...rows] : rows.filter((row) => {
    const text = `${row.name} ${row.pod ?? ''} ${row.id} ${row.runtime} ${row.policy} ${row.cause} ${row.why} ${row.problem ?? ''}`.toLowerCase();
    return parts.every((part) => text.includes(part));
  });
  const order = columns[column] ?? columns.worst, way = reverse ? -1 : 1;
  const text = order === columns.worst || order === byName || column === 'why';
  return found.sort(text ? (a, b) => way * order(a, b) : (a, b) => order(a, b, way));
}
