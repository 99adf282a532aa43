// The node as a ship: the water is its use, and the disc with its line is the mark that it may be loaded to.

import { command, h, mark as set, renew, s } from './dom.js';
import { count, cpus, known, missing, percent } from './format.js';

const states = {
  idle: ['Below the line', 'Quotas may be raised as far as the line allows.'],
  cooling: ['Near the line', 'Above 90 % of the line: no quota is raised, and nothing is taken back.'],
  overload: ['Above the line', 'Raised quotas are taken back, the largest excess first.'],
  unknown: ['Not measured yet', 'No quota is raised until the use of the node is known.'],
};

const deck = 34, keel = 214; // the scale's ends in the drawing
const level = (part) => keel - Math.min(1.06, Math.max(0, part)) * (keel - deck);

/** Node draws the mark and what is said beside it. */
export class Node {
  constructor() {
    this.water = s('path', { class: 'water', d: 'M0 0H300V400H0Z' });
    this.surface = s('path', { class: 'surface', d: 'M0 0H150' }); // up to the scale: beyond it are labels
    this.disc = s('g', { class: 'disc' }, s('circle', { r: 27 }), s('path', { d: 'M-44 0H44' }));
    this.scale = s('g', { class: 'scale' });
    this.labels = s('g', { class: 'labels' });
    this.drawing = s('svg', { viewBox: '0 0 300 236', role: 'img', 'aria-label': 'use of the node against its load line' },
      s('clipPath', { id: 'hull' }, s('path', { d: 'M0 0H300V236H0Z' })),
      s('g', { 'clip-path': 'url(#hull)' }, this.water, this.surface), this.scale, this.disc, this.labels);
    this.facts = h('dl', { class: 'facts' });
    this.features = h('ul', { class: 'features' });
    this.kernel = h('details', { open: matchMedia('(min-width: 761px)').matches }, h('summary', {}, 'What this kernel can do'), this.features);
    this.changed = h('div', { class: 'changed' });
    this.problems = h('div', {});
    this.element = h('section', { class: 'ship panel', 'aria-labelledby': 'ship' },
      h('h2', { id: 'ship' }, 'The node'), this.drawing,
      this.facts, h('div', { class: 'kernel' }, this.kernel, this.changed), this.problems);
  }

  show(view) {
    const m = view.mark;
    this.draw(m);
    renew(this.facts, [m.state, m.risk, m.granted_cpus.toFixed(2), view.mode, view.held_reason, m.used_cpus.toFixed(2), m.threshold_cpus], () => facts(view));
    renew(this.features, m.features, () => (m.features ?? []).map((f) => h('li', { class: f.ok ? 'has' : 'lacks' },
      h('span', { class: 'tick', 'aria-hidden': 'true' }, f.ok ? '✓' : '–'), h('span', {}, h('b', {}, f.name), f.ok ? '' : ' (not here)', `: ${f.text}`))));
    renew(this.changed, [m.changed_files, m.undo], () => changed(m));
    renew(this.problems, view.problems, () => problems(view.problems));
  }

  draw(m) {
    const unknown = m.state === 'unknown' || !(m.capacity_cpus > 0);
    const used = level(m.used_cpus / m.capacity_cpus), line = level(m.threshold_cpus / m.capacity_cpus);
    for (const element of [this.water, this.surface]) {
      element.style.transform = `translateY(${unknown ? keel : used}px)`;
    }
    set(this.disc, 'transform', `translate(64 ${line})`);
    set(this.disc, 'data-state', m.state);
    renew(this.scale, [m.cpus, m.capacity_cpus], () => ticks(m.capacity_cpus));
    const marks = [[deck, `${cpus(m.capacity_cpus)} capacity`], [line, `${cpus(m.threshold_cpus)} load line`], [used - 9, unknown ? 'use not measured' : `${cpus(m.used_cpus)} used`, 'used']];
    renew(this.labels, marks, () => labels(marks));
    set(this.drawing, 'aria-label', unknown ? 'the use of the node is not measured yet' :
      `${cpus(m.used_cpus)} of ${cpus(m.capacity_cpus)} CPUs are used; the load line is at ${cpus(m.threshold_cpus)} CPUs`);
  }
}

/** ticks are the scale: a mark for each CPU, or for each of some. */
function ticks(capacity) {
  const step = [1, 2, 4, 8, 16, 32, 64].find((n) => capacity / n <= 8) ?? 128;
  const list = [s('path', { class: 'deck', d: `M20 ${deck}H150` }), s('path', { d: `M150 ${deck}V${keel}` })];
  for (let n = 0; n < capacity; n += step) {
    const y = level(n / capacity);
    list.push(s('path', { d: `M140 ${y}H150` }), s('text', { x: 135, y: y + 3.5, 'text-anchor': 'end' }, String(n)));
  }
  return list;
}

/** labels are pushed apart where they would lie on each other. */
function labels(marks) {
  const list = marks.map(([y, text, name]) => ({ y, at: y, text, name })).sort((a, b) => a.y - b.y);
  for (let i = 1; i < list.length; i++) list[i].at = Math.max(list[i].at, list[i - 1].at + 17);
  for (let i = list.length - 1, most = keel + 14; i >= 0; i--, most -= 17) list[i].at = Math.min(list[i].at, most);
  return list.flatMap(({ y, at, text, name }) => [
    name ? null : s('path', { d: `M150 ${y}H158L170 ${at}H176` }),
    s('text', { x: name ? 158 : 181, y: at + 4.5, class: name ?? null }, text),
  ].filter(Boolean));
}

function facts(view) {
  const m = view.mark, [word, meaning] = states[m.state] ?? [m.state, ''];
  const rows = [
    ['State', h('span', { class: `state ${m.state}` }, word), meaning],
    ['Use', known(m.used_cpus) && m.state !== 'unknown' ? `${cpus(m.used_cpus)} CPUs` : missing,
      `${percent(m.threshold_cpus > 0 ? m.used_cpus / m.threshold_cpus : null)} of the load line, ${cpus(m.threshold_cpus)} CPUs; mean of 1 s.`],
    ['Raised', `${cpus(m.granted_cpus)} CPUs`, 'may be used above limits: the sum over raised quotas.'],
    ['Risk', ...risk(m.risk)],
    ['Agent', view.mode, view.mode === 'held' ? `It measures and writes nothing: ${view.held_reason || 'no reason given'}.` :
      view.mode === 'offline' ? 'No agent runs. What follows is read from its journal.' : 'It measures and writes.'],
  ];
  return rows.flatMap(([name, value, more]) => [h('dt', {}, name), h('dd', {}, h('b', {}, value), h('span', {}, more))]);
}

/** risk is the load line in words. */
function risk(r) {
  if (!r) return [missing, 'Not computed: loadLinePercent is not set, or the first two minutes are not over.'];
  const within = r.interval ? ` (95 %: ${percent(r.interval[0])} to ${percent(r.interval[1])})` : '';
  const unsure = !r.interval && r.risk > 0 ? ' Its interval is known after five minutes.' : '';
  const share = r.burst_share < 1 ? `${percent(r.burst_share)} of the requested bursts is granted (risk of all: ${percent(r.risk_asked)})` : 'all requested bursts are granted';
  return [percent(r.risk) + within, `of periods lack CPU time that was admitted. Target: at most ${percent(1 - r.target)}, ${r.met ? 'met' : 'missed'}; ${share}. From ${count(r.containers)} containers.${unsure}`];
}

function changed(m) {
  if (!(m.changed_files > 0)) return h('p', {}, 'Nothing is changed on this node now.');
  return [h('p', {}, h('b', {}, `${count(m.changed_files)} ${m.changed_files === 1 ? 'file holds' : 'files hold'}`), ' a value of Plimsoll’s now. This undoes all of it:'), m.undo ? command(m.undo) : null];
}

function problems(list) {
  if (!list || list.length === 0) return null;
  return h('details', { class: 'problems', open: list.length < 4 }, h('summary', {}, `${count(list.length)} ${list.length === 1 ? 'problem' : 'problems'}`),
    h('ul', {}, list.slice(0, 50).map((text) => h('li', {}, text))));
}

