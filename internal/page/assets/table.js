// The table of containers. It has elements only for the rows in sight, so that a thousand rows cost as much as thirty.

import { h, mark, say } from './dom.js';
import { frame } from './frames.js';
import { because, cause, count, cpus, known, missing, ms, share } from './format.js';
import { pick } from './store.js';

const heads = [
  ['name', 'Container', ''],
  ['limit', 'Limit', 'CPUs'],
  ['used', 'Use', 'CPUs, 1 s'],
  ['peak', 'Peak', 'CPUs, 0.1 s'],
  ['gauge', 'Of its limit', '0 to 2 ×'],
  ['lost', 'Time lost', 'ms'],
  ['throttled', 'Throttled', 'periods'],
  ['refills', 'Refills', 'count'],
  ['tokens', 'Burst tokens', 'ms saved'],
  ['quota', 'Quota now', 'CPUs'],
  ['burst', 'Burst now', 'ms'],
  ['why', 'Last decision', 'and why'],
];

const counted = { lost: 'ms in', throttled: 'periods in', refills: 'in' };

/** Table shows the rows of a view. `open` is called with a row's id. */
export class Table {
  constructor(open) {
    this.open = open;
    this.words = '';
    this.column = 'worst';
    this.reverse = false;
    this.shown = [];
    this.at = 0; // the row that has the focus, or would have it
    this.lines = [];
    this.top = 0; // of the scroller: reading it there costs a layout
    this.make();
    new ResizeObserver(() => this.measure()).observe(this.scroller);
    this.scroller.addEventListener('scroll', () => { this.top = this.scroller.scrollTop; this.later(); }, { passive: true });
  }

  make() {
    this.search = h('input', { type: 'search', id: 'search', placeholder: 'Search name, pod, reason', 'aria-label': 'search the containers', autocomplete: 'off', spellcheck: 'false',
      input: () => { this.words = this.search.value; this.scroll(0); this.refresh(); } });
    this.sorting = h('select', { 'aria-label': 'sort by', class: 'narrow', change: () => this.sort(this.sorting.value) },
      h('option', { value: 'worst' }, 'Worst first'), heads.map(([key, text]) => h('option', { value: key }, text)));
    this.worst = h('button', { type: 'button', class: 'quiet', 'aria-pressed': 'true', click: () => this.sort('worst') }, 'Worst first');
    this.number = h('span', { class: 'number', role: 'status' });
    this.heads = new Map(heads.map(([key, text, unit]) => {
      const small = h('small', {}, unit);
      const button = h('button', { type: 'button', click: () => this.sort(key) }, h('span', {}, text), small);
      const cell = h('div', { role: 'columnheader', class: key }, button);
      return [key, { cell, small }];
    }));
    this.inside = h('div', { class: 'inside', role: 'rowgroup' });
    this.head = h('div', { role: 'rowgroup', class: 'heads' }, h('div', { role: 'row', class: 'line', 'aria-rowindex': '1' }, [...this.heads.values()].map((x) => x.cell)));
    this.scroller = h('div', { class: 'scroller', role: 'grid', 'aria-label': 'containers', 'aria-readonly': 'true', keydown: (e) => this.key(e), click: (e) => this.click(e) }, this.head, this.inside);
    this.nothing = h('p', { class: 'nothing', hidden: true });
    this.element = h('section', { class: 'containers', 'aria-labelledby': 'containers' },
      h('div', { class: 'tools' }, h('h2', { id: 'containers' }, 'Containers'), this.number, this.worst, this.sorting, h('span', { class: 'find' }, this.search, h('kbd', { 'aria-hidden': 'true' }, '/'))),
      this.scroller, this.nothing);
  }

  /** show takes the rows of a view, and the length of its window. */
  show(state) {
    this.rows = state.order;
    this.doctor = `plimsoll doctor ${state.view.flags ?? ''}`.trim();
    const seconds = Math.round(state.view.window_ns / 1e9);
    for (const [key, unit] of Object.entries(counted)) say(this.heads.get(key).small, `${unit} ${seconds} s`);
    this.refresh();
  }

  sort(column) {
    if (this.column === column && column !== 'worst') this.reverse = !this.reverse;
    else [this.column, this.reverse] = [column, false];
    this.sorting.value = column;
    this.scroll(0);
    this.refresh();
  }

  refresh() {
    if (!this.rows) return;
    const focused = this.shown[this.at]?.id;
    this.shown = pick(this.rows, this.words, this.column, this.reverse);
    if (focused !== undefined && this.inside.contains(document.activeElement)) { // the focus goes with its container
      const now = this.shown.findIndex((row) => row.id === focused);
      if (now >= 0) this.at = now;
    }
    this.at = Math.max(0, Math.min(this.at, this.shown.length - 1));
    const all = this.rows.length;
    say(this.number, this.shown.length === all ? count(all) : `${count(this.shown.length)} of ${count(all)}`);
    mark(this.worst, 'aria-pressed', String(this.column === 'worst'));
    for (const [key, { cell }] of this.heads) {
      mark(cell, 'aria-sort', key !== this.column ? null : (key === 'name' || key === 'why') !== this.reverse ? 'ascending' : 'descending');
    }
    mark(this.scroller, 'aria-rowcount', String(this.shown.length + 1));
    this.nothing.hidden = this.shown.length > 0;
    this.scroller.hidden = this.shown.length === 0;
    say(this.nothing, all === 0 ? `Plimsoll manages no container here. \`${this.doctor}\` says why.` : 'No container has all of these words.');
    this.draw();
  }

  measure() {
    if (this.scroller.closest('.aside')) return; // a container is shown
    this.height = parseFloat(getComputedStyle(this.scroller).getPropertyValue('--line')) || 44;
    this.sight = this.scroller.clientHeight || innerHeight; // it is as high as its rows: none yet
    this.above = this.head.offsetHeight;
    this.draw();
  }

  /** later draws once before the next frame. */
  later() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  draw() {
    if (!this.height) return;
    const first = Math.max(0, Math.floor(this.top / this.height) - 4);
    const last = Math.min(this.shown.length, first + Math.ceil(this.sight / this.height) + 8);
    const tall = `${this.shown.length * this.height}px`;
    if (this.inside.style.height !== tall) this.inside.style.height = tall;
    const active = document.activeElement;
    const had = this.lines.find((line) => line.element === active);
    while (this.lines.length < last - first) this.lines.push(new Line(this.inside));
    for (const [i, line] of this.lines.entries()) {
      const index = first + i;
      if (index < last) line.show(this.shown[index], index, this.height, index === this.at);
      else line.hide();
    }
    if (had && had.index !== this.at) this.lines.find((line) => line.index === this.at)?.element.focus({ preventScroll: true });
  }

  scroll(top) {
    this.scroller.scrollTop = this.top = top;
  }

  focus(index) {
    this.reach(index);
    this.lines.find((line) => line.index === this.at)?.element.focus({ preventScroll: true });
  }

  /** reach scrolls as far as a row needs to be in sight. */
  reach(index) {
    this.at = Math.max(0, Math.min(index, this.shown.length - 1));
    const top = this.at * this.height, room = this.sight - this.above;
    if (top < this.top) this.scroll(top);
    else if (top + this.height > this.top + room) this.scroll(top + this.height - room);
    this.draw();
  }

  key(e) {
    const page = Math.max(1, Math.floor(this.sight / this.height) - 2);
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.shown.length - 1 }[e.key];
    if (!this.inside.contains(e.target)) return;
    if (to !== undefined) {
      e.preventDefault();
      this.focus(to);
    } else if (e.key === 'Enter' && this.shown[this.at]) {
      e.preventDefault();
      this.open(this.shown[this.at].id);
    }
  }

  click(e) {
    const line = this.lines.find((one) => one.element.contains(e.target));
    if (line && !e.ctrlKey && !e.metaKey && getSelection().isCollapsed) this.open(line.row.id);
  }

  /** back gives the focus to the row of a container. */
  back(id) {
    const index = this.shown.findIndex((row) => row.id === id);
    if (index < 0) return;
    this.reach(index);
    frame(() => this.focus(this.shown.findIndex((row) => row.id === id)));
  }
}

/** title is a name and where it is. A group without a name is called by its path, of which the last part says the most. */
function title(row) {
  if (row.pod) return [row.name, row.pod];
  const cut = row.name.startsWith('/') ? row.name.lastIndexOf('/') : 0;
  return cut > 0 ? [row.name.slice(cut + 1), row.name.slice(0, cut)] : [row.name, row.level === 'pod' ? 'pod' : row.runtime];
}

/** Line is one row's elements, used again and again. */
class Line {
  constructor(into) {
    this.cells = Object.fromEntries(heads.map(([key]) => [key, h('div', { role: 'gridcell', class: key })]));
    const c = this.cells;
    this.name = h('b', {});
    this.pod = h('span', {});
    c.name.append(this.name, this.pod);
    this.bar = h('i', { class: 'bar' });
    this.peak = h('i', { class: 'tip' });
    c.gauge.append(h('span', { class: 'track', 'aria-hidden': 'true' }, this.bar, this.peak, h('i', { class: 'notch' })));
    this.two = {};
    for (const key of ['quota', 'burst']) c[key].append(...(this.two[key] = [h('span', {}), h('small', {})]));
    this.cause = h('span', { class: 'cause' });
    this.why = h('span', { class: 'text' });
    c.why.append(this.cause, this.why);
    this.brief = h('div', { role: 'gridcell', class: 'brief' });
    this.element = h('div', { role: 'row', class: 'line', tabindex: '-1' }, Object.values(c), this.brief);
    into.append(this.element);
  }

  hide() {
    this.row = undefined;
    this.index = -1;
    if (!this.element.hidden) this.element.hidden = true;
  }

  show(row, index, height, reachable) {
    if (this.element.hidden) this.element.hidden = false;
    if (this.index !== index || this.height !== height) {
      [this.index, this.height] = [index, height];
      this.element.style.top = `${index * height}px`;
      mark(this.element, 'aria-rowindex', index + 2);
    }
    mark(this.element, 'tabindex', reachable ? 0 : -1);
    if (this.row === row) return;
    this.row = row;
    this.write(row);
  }

  write(row) {
    const c = this.cells, limit = share(row.limit_ns, row.period_ns);
    const [name, where] = title(row);
    say(this.name, name);
    say(this.pod, where);
    mark(c.name, 'title', [...new Set([row.name, row.pod, row.id])].filter(Boolean).join('\n')); // the cell cuts them off
    this.figure('limit', known(limit) ? cpus(limit) : 'none', true);
    this.figure('used', cpus(row.used_cpus), known(row.used_cpus));
    this.figure('peak', cpus(row.peak_cpus), known(row.peak_cpus));
    this.figure('lost', ms(row.lost_ns), known(row.lost_ns), row.lost_ns > 0);
    this.figure('throttled', count(row.throttled), known(row.throttled), row.throttled > 0);
    this.figure('refills', count(row.refills), known(row.refills));
    this.figure('tokens', ms(row.tokens_ns), known(row.tokens_ns));
    this.gauge(row, limit);
    const quota = share(row.quota_ns, row.period_ns);
    this.pair('quota', known(quota) ? cpus(quota) : 'none', row.quota_asked_ns === row.quota_ns ? '' : `asked ${known(row.quota_asked_ns) ? cpus(share(row.quota_asked_ns, row.period_ns)) : 'none'}`);
    mark(c.quota, 'data-raised', known(limit) && (!known(quota) || quota > limit) ? '' : null);
    this.pair('burst', ms(row.burst_ns), row.burst_asked_ns === row.burst_ns ? '' : `asked ${ms(row.burst_asked_ns)}`);
    say(this.cause, cause(row.cause));
    this.cause.hidden = !row.cause;
    mark(this.cause, 'title', because(row));
    mark(this.cause, 'data-over', row.cause_now ? null : ''); // it loses nothing now
    say(this.why, row.problem || row.why || '');
    mark(c.why, 'title', row.problem ? `${row.problem}\n${row.why}` : row.why);
    mark(this.element, 'data-problem', row.problem ? '' : null);
    mark(this.element, 'data-lost', row.lost_ns > 0 ? '' : null);
    say(this.brief, `${cpus(row.used_cpus)} of ${known(limit) ? cpus(limit) : 'unlimited'} CPUs, peak ${cpus(row.peak_cpus)}, throttled ${count(row.throttled)} ×`);
  }

  figure(key, text, measured, bad = false) {
    const cell = this.cells[key];
    say(cell, text);
    mark(cell, 'title', measured ? null : 'not measured');
    mark(cell, 'data-bad', bad ? '' : null);
    if (text === missing) mark(cell, 'aria-label', 'not measured');
    else mark(cell, 'aria-label', null);
  }

  pair(key, value, asked) {
    const [first, second] = this.two[key];
    say(first, value);
    say(second, asked);
  }

  gauge(row, limit) {
    const measured = known(limit) && known(row.used_cpus) && limit > 0;
    mark(this.cells.gauge, 'data-empty', measured ? null : '');
    const used = measured ? Math.min(1, row.used_cpus / limit / 2) : 0;
    const peak = measured && known(row.peak_cpus) ? Math.min(1, row.peak_cpus / limit / 2) : 0;
    mark(this.cells.gauge, 'aria-label', measured ? `${Math.round(100 * row.used_cpus / limit)} % of the limit` : 'not measured');
    this.bar.style.width = `${(used * 100).toFixed(1)}%`;
    this.peak.style.left = `${(peak * 100).toFixed(1)}%`;
    mark(this.cells.gauge, 'data-over', peak > 0.5 ? '' : null);
  }
}
