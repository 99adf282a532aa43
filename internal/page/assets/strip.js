// The strip: one container's periods over the last minutes. Three plots have one axis of time and one cursor.

import { h, mark, say } from './dom.js';
import { frame } from './frames.js';
import { clock, count, cpus, known, missing, ms } from './format.js';

const spans = [[30, '30 s'], [120, '2 min'], [900, '15 min']]; // seconds
const gutter = 62, lane = 13;
const finest = 1200; // columns of a plot

/**
 * Strip draws a store's strip. While a group sleeps the kernel counts no periods: its use has a gap there, and its quota and
 * its tokens stay as they are.
 */
export class Strip {
  constructor() {
    this.span = 120;
    this.zoom = null; // [from, to] in ms, while the person looks at a part
    this.data = null;
    this.index = null; // of the period under the cursor
    this.plots = [];
    this.make();
    this.sizes = new ResizeObserver(() => this.fit());
    this.dark = matchMedia('(prefers-color-scheme: dark)');
    this.dark.addEventListener('change', this.recolour = () => this.build());
  }

  make() {
    this.buttons = spans.map(([seconds, text]) => h('button', { type: 'button', 'aria-pressed': String(seconds === this.span), click: () => this.look(seconds) }, text));
    this.part = h('span', { class: 'part' });
    const values = [['time', ''], ['used', 'Used'], ['quota', 'Quota in force'], ['limit', 'Limit'], ['tokens', 'Burst tokens'], ['lost', 'Lost'], ['throttles', 'Throttled'], ['refills', 'Refilled']];
    this.values = Object.fromEntries(values.map(([key]) => [key, h('dd', {}, missing)]));
    this.readout = h('dl', { class: 'readout' }, values.map(([key, text]) => h('div', { class: key }, h('dt', {}, text === '' ? h('span', { class: 'sr' }, 'Period that ended at') : text), this.values[key])));
    this.spoken = h('p', { class: 'sr', 'aria-live': 'polite' });
    this.boxes = [h('div', {}), h('div', {}), h('div', {})];
    this.plotted = h('div', {
      class: 'plots', tabindex: '0', role: 'group', keydown: (e) => this.key(e), blur: () => this.point(null),
      'aria-label': 'periods of the container. Left and right move the cursor by a period, with Shift by ten; plus and minus zoom; 0 shows all that is live',
    }, h('h3', {}, 'CPU use in each period, CPUs'), this.boxes[0], h('h3', {}, 'Burst tokens saved at the end of each period, ms'), this.boxes[1],
    h('h3', {}, 'Time lost to throttling in each period, ms'), this.boxes[2]);
    this.nothing = h('p', { class: 'nothing' });
    this.element = h('section', { class: 'strip panel', 'aria-labelledby': 'strip' },
      h('div', { class: 'tools' }, h('h2', { id: 'strip' }, 'Period by period'), h('span', { class: 'group', role: 'group', 'aria-label': 'time shown' }, this.buttons), this.part),
      this.readout, this.nothing, this.plotted, this.spoken);
  }

  /** show takes the periods of a store, and the row that they are of. */
  show(data, row, unmeasured) {
    const other = data !== this.data;
    this.data = data;
    this.limit = known(row?.limit_ns) ? row.limit_ns / row.period_ns : null;
    const none = data.time.length === 0;
    this.nothing.hidden = !none;
    this.plotted.hidden = this.readout.hidden = none;
    if (none) say(this.nothing, unmeasured || 'No period has ended yet. A container that sleeps has none.');
    else if (!this.pending || other) this.build();
    else this.draw();
  }

  build() {
    if (!this.data || this.data.time.length === 0) return;
    for (const plot of this.plots) plot.destroy();
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(['use', 'use-fill', 'quota', 'limit', 'token', 'token-fill', 'bad', 'good', 'grid', 'dim'].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    const c = this.colours, after = uPlot.paths.stepped({ align: -1 });
    const bars = uPlot.paths.bars({ size: [1, 60], align: -1 });
    const make = [
      () => this.plot(0, 240, [{ label: 'used', stroke: c.use, fill: c['use-fill'], width: 1, paths: after }, { label: 'quota', stroke: c.quota, width: 1.5, paths: after, spanGaps: true }],
        () => Math.max(this.limit ?? 0, 0.1), [lane * 2 + 12, 30, 0, 0]),
      () => this.plot(1, 104, [{ label: 'tokens', stroke: c.token, fill: c['token-fill'], width: 1.5, paths: after, spanGaps: true }], () => 10, [6, 30, 0, 0]),
      () => this.plot(2, 96, [{ label: 'lost', stroke: c.bad, fill: c.bad, width: 0, paths: bars }], () => this.data.length / 1e6, [6, 30, 0, 0], true),
    ];
    this.plots = [];
    this.sizes.disconnect();
    this.pending = make;
    for (const [n, plot] of make.entries()) {
      frame(() => {
        if (this.pending !== make) return;
        this.plots.push(plot());
        this.paint(this.plots[n]);
        this.tell();
        if (n === 2) this.sizes.observe(this.boxes[0]);
      });
    }
  }

  plot(n, height, series, least, padding, times = false) {
    const c = this.colours, font = '11px system-ui, sans-serif';
    const axis = { stroke: c.dim, font, grid: { stroke: c.grid, width: 1 }, ticks: { stroke: c.grid, width: 1, size: 4 } };
    return new uPlot({
      width: Math.max(200, this.boxes[n].clientWidth), height: height + (times ? 26 : 0), ms: 1, padding,
      legend: { show: false },
      scales: { x: { time: false, auto: false, range: () => this.range() }, y: { range: (_, __, most) => [0, Math.max(least(), most ?? 0) * 1.08] } },
      axes: [
        { ...axis, size: times ? 26 : 9, space: 76, incrs: [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5], values: (_, at, __, ___, step) => at.map((t) => (times ? clock(t, step < 1000) : '')) },
        { ...axis, size: gutter, space: 28 },
      ],
      series: [{}, ...series.map((one) => ({ spanGaps: false, points: { show: false }, ...one }))],
      cursor: { sync: { key: 'plimsoll', setSeries: false }, drag: { x: true, y: false, setScale: false }, points: { show: false }, y: n === 0 },
      hooks: {
        setCursor: [(u) => { if (u.cursor.event || u.cursor.idx === null) this.hover(u); }],
        setSelect: [(u) => this.select(u)],
        draw: n === 0 ? [(u) => this.marks(u)] : [],
      },
    }, [[], ...series.map(() => [])], this.boxes[n]);
  }

  /**
   * columns are what is in sight. Where several periods fall on one pixel, they are drawn as one: the most that was used, the
   * fewest tokens, the most time lost. So no throttle vanishes, and a quarter of an hour costs no more than two minutes.
   */
  columns() {
    const d = this.data, [from, to] = this.range(), length = d.length / 1e6;
    const begin = Math.max(0, this.find(from) - 1), end = Math.min(d.time.length, this.find(to) + 1);
    const step = this.step();
    if (step === 1) {
      const cut = (column) => column.slice(begin, end);
      return [[cut(d.time), cut(d.used), cut(d.quota)], [cut(d.time), cut(d.tokens)], [cut(d.time), cut(d.lost)]];
    }
    const wide = step * length, time = [], used = [], quota = [], tokens = [], lost = [];
    for (let i = begin; i < end; i++) {
      const slot = Math.ceil(d.time[i] / wide) * wide, last = time.length - 1;
      if (time[last] !== slot) {
        time.push(slot);
        used.push(d.used[i]);
        quota.push(d.quota[i]);
        tokens.push(d.tokens[i]);
        lost.push(d.lost[i]);
        continue;
      }
      if (d.used[i] === null) continue; // a gap inside of a pixel
      used[last] = Math.max(used[last] ?? 0, d.used[i]);
      quota[last] = d.quota[i];
      tokens[last] = d.tokens[i] === null ? tokens[last] : Math.min(tokens[last] ?? d.tokens[i], d.tokens[i]);
      lost[last] = Math.max(lost[last] ?? 0, d.lost[i]);
    }
    return [[time, used, quota], [time, tokens], [time, lost]];
  }

  /** step is how many periods are drawn as one. */
  step() {
    const [from, to] = this.range();
    return Math.max(1, Math.ceil((to - from) / (this.data.length / 1e6) / finest));
  }

  /** range is the time in sight. */
  range() {
    if (this.zoom) return this.zoom;
    const last = this.data?.last ?? 0;
    return [last - this.span * 1000, last];
  }

  /** draw draws each plot in a frame of its own. */
  draw() {
    for (const plot of this.plots) frame(() => this.paint(plot));
    this.tell();
  }

  paint(plot) {
    const n = this.plots.indexOf(plot);
    if (n < 0) return; // it has been destroyed meanwhile
    const [from, to] = this.range();
    plot.batch(() => {
      plot.setData(this.columns()[n], false);
      plot.setScale('x', { min: from, max: to });
    });
  }

  tell() {
    const step = this.step();
    const drawn = step > 1 ? `drawn in steps of ${step} periods: the most used and lost in each, the fewest tokens` : '';
    say(this.part, this.zoom ? `${clock(this.zoom[0], true)} to ${clock(this.zoom[1], true)}, not live${drawn ? `; ${drawn}` : ''}` : drawn);
    for (const [i, button] of this.buttons.entries()) mark(button, 'aria-pressed', String(!this.zoom && spans[i][0] === this.span));
    this.read();
  }

  /** marks draws the limit, and above the plot a lane for throttled periods and one for refilled ones. */
  marks(u) {
    const { ctx, bbox } = u, ratio = devicePixelRatio, d = this.data, c = this.colours;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    const lanes = [['throttled', d.throttles, c.bad, 2], ['refilled', d.refills, c.good, 1]];
    const width = Math.max(1.5 * ratio, Math.abs(u.valToPos(d.length / 1e6, 'x', true) - u.valToPos(0, 'x', true)) - ratio * 0.5);
    for (const [text, column, colour, row] of lanes) {
      const y = bbox.top - (row * lane + 6) * ratio;
      ctx.fillStyle = colour;
      ctx.fillText(text, bbox.left - 6 * ratio, y + 5 * ratio);
      this.inSight((i) => {
        if (!(column[i] > 0)) return;
        const x = u.valToPos(d.time[i], 'x', true);
        ctx.fillRect(Math.max(bbox.left, x - width), y, Math.min(width, x - bbox.left), 9 * ratio);
      });
    }
    if (this.limit !== null) {
      const y = Math.round(u.valToPos(this.limit, 'y', true)) + 0.5;
      ctx.strokeStyle = c.limit;
      ctx.lineWidth = ratio;
      ctx.setLineDash([5 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
    }
    ctx.restore();
  }

  inSight(visit) {
    const [from, to] = this.range(), time = this.data.time;
    for (let i = this.find(from); i < time.length && time[i] <= to + 100; i++) visit(i);
  }

  /** find is the first period that ends at a time or after it. */
  find(at) {
    const time = this.data.time;
    let low = 0, high = time.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (time[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  hover(u) {
    if (u.cursor.left === undefined || u.cursor.left < 0) this.time = null;
    else this.time = u.posToVal(u.cursor.left, 'x');
    this.read();
  }

  /** read writes what was in the period under the cursor, or in the last one. */
  read() {
    const d = this.data, v = this.values;
    let i = d.time.length - 1;
    if (this.time) i = Math.min(i, this.find(this.time));
    const idle = d.used[i] === null;
    say(v.time, `${clock(d.time[i], true)}${this.time ? '' : ', the last one'}`);
    say(v.used, idle ? 'idle' : `${cpus(d.used[i])} CPUs`);
    say(v.quota, known(d.quota[i]) ? `${cpus(d.quota[i])} CPUs` : idle ? missing : 'none');
    say(v.limit, this.limit === null ? 'none' : `${cpus(this.limit)} CPUs`);
    say(v.tokens, known(d.tokens[i]) ? `${ms(d.tokens[i] * 1e6)} ms` : missing);
    say(v.lost, known(d.lost[i]) ? `${ms(d.lost[i] * 1e6)} ms` : missing);
    say(v.throttles, `${count(d.throttles[i])} ×`);
    say(v.refills, `${count(d.refills[i])} ×`);
    this.index = i;
  }

  select(u) {
    if (u.select.width < 4) return;
    const from = u.posToVal(u.select.left, 'x'), to = u.posToVal(u.select.left + u.select.width, 'x');
    for (const plot of this.plots) plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.part_(from, to);
  }

  /** part_ shows a part, of ten periods at least, and no longer what is live. */
  part_(from, to) {
    const length = this.data.length / 1e6, first = this.data.time[0] - length, last = this.data.last;
    const wide = Math.min(Math.max(to - from, 10 * length), last - first);
    const begin = Math.min(Math.max(from, first), last - wide);
    this.zoom = [begin, begin + wide];
    this.draw();
  }

  look(seconds) {
    this.span = seconds;
    this.zoom = null;
    this.draw();
  }

  /** point moves the cursor of all plots to a period. */
  point(i) {
    this.time = i === null ? null : this.data.time[i];
    const left = i === null ? -10 : this.plots[0]?.valToPos(this.time, 'x');
    for (const plot of this.plots) plot.setCursor({ left, top: i === null ? -10 : 10 }, false);
    this.read();
  }

  key(e) {
    const last = this.data.time.length - 1, [from, to] = this.range(), step = e.shiftKey ? 10 : 1;
    const at = this.time ? this.index : last;
    const goal = { ArrowLeft: at - step, ArrowRight: at + step, Home: this.find(from), End: last }[e.key];
    if (goal !== undefined) {
      const i = Math.max(0, Math.min(goal, last));
      if (this.data.time[i] < from || this.data.time[i] > to) this.part_(this.data.time[i] - (to - from) / 2, this.data.time[i] + (to - from) / 2);
      this.point(i);
      say(this.spoken, ['time', 'used', 'quota', 'tokens', 'lost', 'throttles', 'refills'].map((key) => `${key} ${this.values[key].textContent}`).join(', '));
    } else if (e.key === '+' || e.key === '-') {
      const middle = this.time ?? (from + to) / 2, wide = (to - from) * (e.key === '+' ? 0.5 : 2);
      this.part_(middle - wide / 2, middle + wide / 2);
    } else if (e.key === '0') this.look(this.span);
    else return;
    e.preventDefault();
  }

  fit() {
    for (const [n, plot] of this.plots.entries()) {
      const width = this.boxes[n].clientWidth;
      if (width > 0 && width !== plot.width) plot.setSize({ width, height: plot.height });
    }
  }

  destroy() {
    this.pending = null;
    this.dark.removeEventListener('change', this.recolour);
    this.sizes.disconnect();
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
  }
}
