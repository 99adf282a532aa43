// Online beside offline work, and exclusive CPUs: shown where the agent does either.

import { h, renew } from './dom.js';
import { count, cpus, known, missing, span, waitedFor } from './format.js';

/** Colocation shows the two panels. */
export class Colocation {
  constructor() {
    this.ranks = h('section', { class: 'panel colocation', 'aria-labelledby': 'colocation' });
    this.map = h('section', { class: 'panel reserve', 'aria-labelledby': 'reserve' });
    this.element = h('div', { class: 'two' }, this.ranks, this.map);
  }

  show(view, rows) {
    const c = view.colocation, r = view.reserve;
    this.ranks.hidden = !c && !view.waits?.problem && !view.waits?.ranks?.some((r) => r.waits > 0);
    this.map.hidden = !r;
    this.element.hidden = this.ranks.hidden && this.map.hidden;
    if (!this.ranks.hidden) renew(this.ranks, [c, view.waits], () => ranks(c, view.waits, view.mark.capacity_cpus));
    if (r) renew(this.map, [r, view.mark.cpus], () => reserve(r, view.mark.cpus, rows));
  }
}

function ranks(c, waits, capacity) {
  const list = [h('h2', { id: 'colocation' }, 'Online beside offline work')];
  if (c) {
    list.push(h('p', {}, h('b', {}, c.mechanism), `: ${c.why}.`, known(c.offline_room_cpus) ? ` Offline work may use ${cpus(c.offline_room_cpus)} CPUs now.` : ''));
    list.push(h('ul', { class: 'causes' }, (c.ranks ?? []).map((r) => {
      const bar = h('i', { class: r.rank });
      bar.style.width = `${(100 * Math.min(1, capacity > 0 ? r.used_cpus / capacity : 0)).toFixed(1)}%`;
      return h('li', {}, h('span', {}, `${r.rank}, ${count(r.containers)} ${r.containers === 1 ? 'container' : 'containers'}`), h('b', {}, `${cpus(r.used_cpus)} CPUs`), h('span', { class: 'rail', 'aria-hidden': 'true' }, bar));
    })));
    const knobs = c.knobs ?? [], force = knobs.filter((k) => k.in_force).length;
    if (knobs.length > 0) list.push(h('p', { class: 'axis' }, `Files that hold the priority that Plimsoll requests: ${count(force)} of ${count(knobs.length)}.`));
    const bad = [...knobs.filter((k) => k.problem).map((k) => `${k.cgroup}: ${k.knob}: ${k.problem}`), ...(c.missing ?? []).map((g) => `${g} has no such file`), ...(c.exposed ?? []).map((g) => `${g} is offline, and not a sibling of all online work`)];
    if (bad.length > 0) list.push(h('ul', { class: 'plain bad' }, bad.slice(0, 20).map((text) => h('li', {}, text))));
  }
  if (waits?.problem) list.push(h('p', { class: 'nothing' }, `Waits are not measured: ${waits.problem}`));
  else if (waits) {
    list.push(h('h3', {}, 'Waits for a CPU, without what limits took'), h('table', { class: 'waiting' },
      h('thead', {}, h('tr', {}, ['Rank', 'Waits', 'Total', 'p50 up to', 'p99 up to', 'Beside other rank'].map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, (waits.ranks ?? []).map((r) => h('tr', {}, h('th', { scope: 'row' }, r.rank), h('td', {}, count(r.waits)), h('td', {}, span(r.time_ns)), h('td', {}, quantile(r, 0.5)), h('td', {}, quantile(r, 0.99)), h('td', {}, span(r.beside_other_ns)))))),
      h('p', { class: 'axis' }, 'Beside other rank: CPU time for which the other thread of the core ran the other rank.'));
    list.push(...shortfall(waits.ranks ?? []));
  }
  return list;
}

/** shortfall is what was wanted and reserved and not received, by cause. Where nobody reserves anything it is not known. */
function shortfall(ranks) {
  const head = h('h3', {}, 'Shortfall by cause: wanted and reserved, and not received');
  if (!ranks.some((r) => r.reserving > 0)) return [head, h('p', { class: 'nothing' }, 'Not known: the request of no container is known.')];
  const causes = new Map();
  for (const [i, r] of ranks.entries()) {
    for (const c of r.causes ?? []) {
      if (!(c.shortfall_ns > 0)) continue;
      if (!causes.has(c.cause)) causes.set(c.cause, ranks.map((one) => (one.reserving > 0 ? 0 : null)));
      causes.get(c.cause)[i] = c.shortfall_ns;
    }
  }
  if (causes.size === 0) return [head, h('p', { class: 'nothing' }, 'None: each container with a request received it.')];
  const sum = (list) => list.reduce((all, n) => all + (n ?? 0), 0);
  const rows = [...causes].sort((a, b) => sum(b[1]) - sum(a[1]));
  return [head, h('table', { class: 'shortfall' }, h('thead', {}, h('tr', {}, ['Cause', ...ranks.map((r) => r.rank)].map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', {}, rows.map(([cause, list]) => h('tr', {}, h('th', { scope: 'row' }, waitedFor(cause)), list.map((n) => h('td', {}, span(n))))))),
  h('p', { class: 'axis' }, `Of the containers that are here now and have a request: ${ranks.map((r) => `${count(r.reserving)} ${r.rank}`).join(', ')}.`)];
}

/** quantile is the upper end of the class that it lies in. The last class has none, and is not in the list. */
function quantile(r, q) {
  if (r.waits === 0) return missing;
  let n = 0, longest = null;
  for (const l of r.lengths ?? []) {
    longest = l.up_to_ns;
    n += l.n;
    if (n >= q * r.waits) return span(longest);
  }
  return longest === null ? missing : `> ${span(longest)}`;
}

/** cpuset reads "0-3,7". What is no cpuset has no CPUs. */
export function cpuset(text) {
  const list = [];
  for (const part of (text ?? '').split(',')) {
    const m = /^(\d+)(?:-(\d+))?$/.exec(part.trim());
    if (!m) continue;
    for (let n = Number(m[1]); n <= Math.min(Number(m[2] ?? m[1]), 8191); n++) list.push(n);
  }
  return list;
}

/** reserve draws a square for each CPU: whose it is, by number and colour. */
function reserve(r, online, rows) {
  const owner = new Map(), names = [];
  for (const own of r.exclusive ?? []) {
    names.push(own);
    for (const n of cpuset(own.cpus)) owner.set(n, [...(owner.get(n) ?? []), names.length]);
  }
  const kept = new Set(cpuset(r.reserved)), shared = new Set(cpuset(r.shared)), bound = new Set((r.pinned ?? []).flatMap((b) => cpuset(b.cpus)));
  const all = Math.max(online, 1 + Math.max(-1, ...owner.keys(), ...kept, ...shared, ...bound));
  const squares = Array.from({ length: Math.min(all, 1024) }, (_, n) => {
    const own = owner.get(n);
    const what = own ? `exclusive: ${own.map((i) => names[i - 1].cgroup).join(', ')}` : bound.has(n) ? 'bound by another program' : kept.has(n) ? 'reserved, shared' : shared.has(n) ? 'shared' : 'not in use here';
    return h('li', { class: own ? `own k${(own[0] - 1) % 6}` : kept.has(n) ? 'kept' : shared.has(n) ? 'pool' : 'off', title: `CPU ${n}: ${what}` }, h('span', {}, String(n)), own ? h('b', {}, own.join('·')) : null);
  });
  const name = (cgroup) => rows.get(cgroup)?.name ?? cgroup;
  return [h('h2', { id: 'reserve' }, 'Exclusive CPUs'),
    h('p', {}, h('b', {}, `${count(owner.size)} of ${count(online)} CPUs`), ` exclusive, ${count(r.shared_cpus)} shared (${r.shared || missing}); at least ${cpus(r.min_shared_cpus)} stay shared. Policy: ${r.policy}${r.all ? ', for all containers' : ''}.`),
    h('ul', { class: 'map', 'aria-label': 'CPUs and whose they are' }, squares),
    h('p', { class: 'axis' }, 'A number below: exclusive, see the list. Dashed: shared, and never given away. Pale: not in use here, or bound by another program.'),
    h('ol', { class: 'owners' }, names.slice(0, 100).map((o, i) => h('li', { class: `k${i % 6}` }, h('b', {}, name(o.cgroup)), ` CPUs ${o.cpus}, requests ${cpus(o.request_cpus)} CPUs${o.packed ? ', packed with others' : ''}${o.quota_unlimited ? ', no quota' : ''}${o.partition ? ', a partition' : ''}`))),
    (r.refused ?? []).length > 0 ? h('div', {}, h('h3', {}, 'Refused'), h('ul', { class: 'plain' }, r.refused.slice(0, 50).map((x) => h('li', {}, h('b', {}, name(x.cgroup)), `: ${x.why}`)))) : null,
    (r.pinned ?? []).length > 0 ? h('div', {}, h('h3', {}, 'Bound by another program, left alone'), h('ul', { class: 'plain' }, r.pinned.slice(0, 50).map((x) => h('li', {}, h('b', {}, name(x.cgroup)), `: CPUs ${x.cpus}`)))) : null,
    r.unbound > 0 ? h('p', { class: 'axis' }, `${count(r.unbound)} processes and kernel threads are in no group that can be bound.`) : null];
}
