// The stream of the server's events. It is closed while the page is hidden, and opened again after it.

import { frame } from './frames.js';

const stall = 2250; // milliseconds without an event: the server sends one each second
const events = ['view', 'change', 'detail', 'periods', 'agent'];

/**
 * Live keeps one stream open. It tells every event, and each new condition: connecting, live, lost, paused. A stream that is
 * silent counts as lost: a server that hangs, or a network that drops everything, raises no error.
 */
export class Live {
  constructor({ event, condition }) {
    this.tell = event;
    this.say = condition;
    this.container = null;
    this.recorded = false;
    this.tries = 0;
    this.heard = performance.now();
    document.addEventListener('visibilitychange', () => this.visible());
    addEventListener('pagehide', () => this.close());
    addEventListener('pageshow', (e) => { if (e.persisted) this.visible(); });
    setInterval(() => this.watch(), 200);
  }

  /** show opens a stream of the view, and of one container where there is an id. */
  show(container) {
    this.container = container;
    this.tries = 0;
    this.open();
  }

  visible() {
    if (document.hidden) {
      this.close();
      this.say('paused');
    } else {
      this.tries = 0;
      this.open();
    }
  }

  open() {
    this.close();
    if (document.hidden) return;
    const opened = this.heard = performance.now();
    const source = new EventSource('/api/v1/live' + (this.container === null ? '' : `?container=${encodeURIComponent(this.container)}`));
    this.source = source;
    for (const name of events) {
      source.addEventListener(name, (e) => {
        if (source !== this.source) return;
        this.heard = performance.now();
        this.tries = 0;
        frame(() => { if (source === this.source) this.tell(name, JSON.parse(e.data)); }); // a view and a detail come together
        this.say('live');
      });
    }
    source.onerror = () => {
      if (source !== this.source) return;
      if (performance.now() - opened > stall) this.open(); // the server ends each stream after a minute
      else this.again();
    };
  }

  close() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.source?.close();
    this.source = undefined;
  }

  /** again opens the stream after a wait that doubles, up to 8 s. */
  again() {
    this.close();
    this.say('lost');
    this.timer = setTimeout(() => this.open(), Math.min(8000, 500 * 2 ** this.tries++));
  }

  watch() {
    if (!this.source || this.recorded) return;
    if (performance.now() - this.heard > stall) this.again();
  }
}
