// One container: the strip, what it demands, what it waited for, and what other limits would have done.

import { command, h, renew, say } from './dom.js';
import { frame } from './frames.js';
import { because, cause, clock, count, cpus, known, missing, ms, percent, share, span } from './format.js';
import { Strip } from './strip.js';

/** Container shows a row and its detail. */
export class Container {
  constructor(id) {
    this.id = id;
    this.strip = new Strip();
    this.title = h('h1', { class: 'title', tabindex: '-1' }, id);
    this.where = h('p', { class: 'where' });
    this.decision = h('p', { class: 'decision' });
    this.figures = h('dl', { class: 'figures' });
    this.requests = h('dl', { class: 'figures requests', hidden: true });
    this.demand = h('section', { class: 'panel demand', 'aria-labelledby': 'demand' });
    this.waits = h('section', { class: 'panel waits', 'aria-labelledby': 'waits' });
    this.advice = h('section', { class: 'panel advice', 'aria-labelledby': 'advice' });
    this.three = h('div', { class: 'three', hidden: true }, this.demand, this.waits, this.advice);
    this.element = h('article', { class: 'container' },
      h('a', { class: 'back', href: '#/' }, '← All containers', h('kbd', { 'aria-hidden': 'true' }, 'Esc')), this.title, this.where, this.figures, this.requests, this.decision,
      this.strip.element, this.three);
  }

  show(state) {
    const row = state.rows.get(this.id) ?? state.detail?.row;
    if (!row?.id) {
      say(this.where, state.view === null ? 'Waiting for the first figures.' : 'This container is not here. It may have ended.');
      return;
    }
    say(this.title, row.name);
    renew(this.where, [row.pod, row.runtime, row.level, row.policy, row.id, state.rows.has(this.id)], () => [
      row.pod ? h('span', {}, `pod ${row.pod}`) : null, h('span', {}, row.runtime), h('span', {}, row.level), h('span', {}, `policy ${row.policy}`), h('code', {}, row.id),
      state.rows.has(this.id) ? null : h('b', {}, 'It has ended.')]);
    renew(this.decision, [row.cause, row.cause_now, row.cause_now ? null : row.last_lost, row.why, row.problem], () => [
      row.cause ? h('span', { class: 'cause', 'data-over': row.cause_now ? null : '' }, cause(row.cause)) : null, row.cause ? ` ${because(row)} ${lately(row)}` : null, row.why ? `Last decision: ${row.why}` : 'No decision yet.',
      row.problem ? h('b', { class: 'bad' }, ` ${row.problem}`) : null]);
    const seconds = Math.round(state.view.window_ns / 1e9);
    const d = state.detail;
    renew(this.figures, [row, seconds], () => boxes(figures(row, seconds)));
    const requests = answers(row.requests);
    this.requests.hidden = requests.length === 0;
    renew(this.requests, requests, () => boxes(requests));
    this.strip.show(state.strip, row, d?.unmeasured);
    if (d === null || d === this.detail) return;
    this.detail = d;
    const measured = state.view.waits;
    const diagnose = ['plimsoll diagnose', state.view.flags, quote(row.name)].filter(Boolean).join(' '); // a name may be quoted by --
    for (const [panel, from, make] of [
      [this.demand, [d.histogram, d.demand, d.unmeasured], () => histogram(d, row)],
      [this.waits, [d.waited, diagnose, Boolean(measured), measured?.problem], () => waits(d.waited, diagnose, measured, row)],
      [this.advice, d.advice, () => advice(d.advice, row)],
    ]) {
      frame(() => {
        this.three.hidden = false;
        renew(panel, from, make);
      });
    }
  }

  destroy() { this.strip.destroy(); }
}

function figures(row, seconds) {
  const limit = share(row.limit_ns, row.period_ns), quota = share(row.quota_ns, row.period_ns);
  const asked = row.quota_asked_ns === row.quota_ns ? 'as asked' : `asked ${known(row.quota_asked_ns) ? cpus(share(row.quota_asked_ns, row.period_ns)) : 'none'}`;
  return [
    ['Limit', known(limit) ? cpus(limit) : 'none', 'CPUs'],
    ['Use', cpus(row.used_cpus), 'CPUs, last 1 s'],
    ['Peak', cpus(row.peak_cpus), `CPUs, in ${span(row.period_ns)}`],
    ['Time lost', ms(row.lost_ns), `ms, last ${seconds} s`, row.lost_ns > 0],
    ['Throttled', count(row.throttled), `periods, last ${seconds} s`, row.throttled > 0],
    ['Refills', count(row.refills), `last ${seconds} s`],
    ['Burst tokens', ms(row.tokens_ns), `ms saved of ${ms(row.burst_ns)}`],
    ['Quota now', known(quota) ? cpus(quota) : 'none', `CPUs, ${asked}`],
    ['Burst now', ms(row.burst_ns), row.burst_asked_ns === row.burst_ns ? 'ms, as asked' : `ms, asked ${ms(row.burst_asked_ns)}`],
  ];
}

function boxes(list) {
  return list.map(([name, value, unit, bad]) => h('div', { class: bad ? 'bad' : null, title: value === missing ? 'not measured' : null }, h('dt', {}, name), h('dd', {}, h('b', {}, value), ' ', h('small', {}, unit))));
}

/** answers are the figures of requests, where they are measured. */
function answers(r) {
  if (!r || r.answered + r.doubtful === 0) return [];
  if (r.withheld) return [['Response p99', missing, 'cannot be told: several requests at a time on a connection']];
  const seconds = r.window_ns / 1e9;
  return [
    ['Requests', cpus(r.answered / seconds), `a second, last ${Math.round(seconds)} s`],
    ['Response p99', ms(r.response.p99_ns), `ms; p50 ${ms(r.response.p50_ns)} ms`, r.throttled_ns > 0.05 * r.time_ns],
    r.throttled_known ? ['Without throttling', ms(r.unthrottled.p99_ns), `ms p99; ${percent(r.time_ns > 0 ? r.throttled_ns / r.time_ns : 0)} of the time throttled`] :
      ['Without throttling', missing, 'the throttled part is not known'],
  ];
}

/** histogram draws the periods by their use. Its scale is logarithmic: the rare periods are those that throttle. */
function histogram(d, row) {
  const head = h('h2', { id: 'demand' }, 'Demand');
  const counts = d.histogram ?? [], all = counts.reduce((sum, n) => sum + n, 0);
  if (all === 0) return [head, h('p', { class: 'nothing' }, d.unmeasured || 'Not measured yet: no period has ended.')];
  const above = counts.slice(17).reduce((sum, n) => sum + n, 0);
  const decades = 4, tall = (n) => (n === 0 ? 0 : Math.max(0.02, 1 + Math.log10(n / all) / decades));
  const bars = counts.map((n, i) => {
    const bar = h('i', { class: i > 16 ? 'over' : null, title: `${i === 0 ? 'nothing used' : i === 64 ? 'more than 3.94 × the limit' : `up to ${(i / 16).toFixed(2)} × the limit`}: ${count(n)} periods, ${percent(n / all)}` });
    bar.style.height = `${(tall(n) * 100).toFixed(1)}%`;
    return bar;
  });
  const limit = share(row.limit_ns, row.period_ns);
  return [head,
    h('p', {}, h('b', {}, percent(above / all)), ` of ${count(all)} periods used more than the limit${known(limit) ? ` of ${cpus(limit)} CPUs` : ''}.`, demand(d.demand)),
    h('div', { class: 'histogram', role: 'img', 'aria-label': `histogram of the use of ${count(all)} periods in sixteenths of the limit; ${percent(above / all)} are above it` },
      h('div', { class: 'rules' }, ['100 %', '10 %', '1 %', '0.1 %', '0.01 %'].map((text) => h('span', {}, text))), h('div', { class: 'bars' }, bars),
      h('div', { class: 'scale' }, ['0', '1 ×', '2 ×', '3 ×', '4 ×'].map((text) => h('span', {}, text)))),
    h('p', { class: 'axis' }, 'Use of a period against the limit; share of the periods, logarithmic')];
}

function demand(d) {
  if (!d) return null;
  if (!d.censored) return ` It wants ${cpus(d.low_cpus)} CPUs on average.`;
  return ` It wants between ${cpus(d.low_cpus)} and ${cpus(d.high_cpus)} CPUs on average: throttling hides the rest.`;
}

const own = ['own_limit', 'pod_limit'];

/** lately says until when time was lost, where none is lost now, and why it is lost now, where that is another cause. */
function lately(row) {
  if (!row.cause_now) return row.last_lost ? `It has lost nothing since ${clock(row.last_lost)}. ` : '';
  return row.cause_now === row.cause ? '' : `Now: ${because({ cause: row.cause_now, cause_now: row.cause_now })} `;
}

/** unmeasured is why a container has no waits; measured are those of the node. */
function unmeasured(measured, row) {
  if (!measured) return 'Not measured: the agent runs without --waits. This measures them for a while:';
  if (measured.problem) return `Not measured: ${measured.problem}`;
  return row.level === 'pod' ? 'Not measured: the waits are those of its containers.' : 'Not measured yet.';
}

/** waits says first what the longest wait was for. A limit's part is never laid on a neighbour. diagnose is the command that measures it. */
function waits(w, diagnose, measured, row) {
  const head = h('h2', { id: 'waits' }, 'Waits for a CPU');
  if (!w) return [head, h('p', { class: 'nothing' }, unmeasured(measured, row)), measured ? null : command(diagnose)];
  const list = (w.causes ?? []).filter((c) => c.time_ns > 0), longest = Math.max(1, ...list.map((c) => c.time_ns)), total = list.reduce((sum, c) => sum + c.time_ns, 0);
  if (list.length === 0) return [head, h('p', {}, 'It has waited for nothing.')];
  const first = list[0];
  const near = w.neighbours ?? [], behind = list.find((c) => c.cause === 'neighbour');
  const part = percent(first.time_ns / total);
  const blame = own.includes(first.cause) ? `${part} of the waiting is a limit of its own, not a neighbour.` :
    first === behind && near.length > 0 ? `${part} of the waiting is behind neighbours, the longest behind ${near[0].name}.` : `${part} of the waiting: ${first.text}.`;
  const rows = list.map((c) => {
    const bar = h('i', { class: own.includes(c.cause) ? 'limit' : null });
    bar.style.width = `${(100 * c.time_ns / longest).toFixed(1)}%`;
    return h('li', {}, h('span', {}, c.text), h('b', {}, span(c.time_ns)), h('span', { class: 'rail', 'aria-hidden': 'true' }, bar));
  });
  return [head, h('p', {}, h('b', {}, blame), ` Threads wanted ${span(w.wanted_ns)} of CPU time and received ${span(w.received_ns)}, since the agent knows the container.`), h('ul', { class: 'causes' }, rows),
    near.length > 0 ? [h('h3', {}, 'Neighbours that had the CPU'), h('ul', { class: 'causes' }, near.slice(0, 8).map((n) => h('li', {}, h('span', { title: n.cgroup }, n.name), h('b', {}, span(n.time_ns)))))] :
      behind && behind.time_ns >= 0.05 * total ? [h('p', { class: 'axis' }, 'This names the neighbours:'), command(diagnose)] :
        h('p', { class: 'axis' }, 'No neighbour had a part of it that is worth a name.')].flat();
}

/** quote makes one argument of a shell of a name, which a tenant chooses. */
export const quote = (text) => (/^[A-Za-z0-9_./:-]+$/.test(text) && !text.startsWith('-') ? text : `-- '${text.replaceAll("'", "'\\''")}'`);

/** range is one number where both ends are equal. */
const range = ([low, high], word) => (low === high ? word(low) : `${word(low)} to ${word(high)}`);

function advice(list, row) {
  const head = h('h2', { id: 'advice' }, 'With another burst or limit');
  if (!list || list.length === 0) return [head, h('p', { class: 'nothing' }, 'Not known: it takes recorded periods of a container with a limit.')];
  return [head, h('p', {}, 'What these settings would have done with the periods that are recorded.'),
    h('table', {}, h('thead', {}, h('tr', {}, ['Setting', 'Limit, CPUs', 'Burst, ms', 'Throttled, periods', 'Delay, periods'].map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, list.map((a) => h('tr', { class: a.now ? 'now' : null }, h('th', { scope: 'row' }, a.text, a.now ? h('span', { class: 'chip' }, 'now') : null),
        h('td', {}, cpus(share(a.limit_ns, row.period_ns))), h('td', {}, ms(a.burst_ns)), h('td', {}, range(a.throttled, count)), h('td', {}, range(a.delay, (n) => cpus(n))))))),
    h('p', { class: 'axis' }, 'Delay: mean wait of work, in periods of the limit. Two numbers are the least and the most: throttling hides some demand.')];
}
