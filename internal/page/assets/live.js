// The stream of the server's events. It is closed while the page is hidden, and opened again after it.

import { frame } from './frames.js';

const stall = 2250; // milliseconds without an event: the server sends one each second
const events = ['view', 'change', 'detail', 'periods', 'agent'];

/**
 * Live keeps one stream open. It tells every event, and each new condition: connecting, live, lost, paused, and refused with
 * the server's reason. A stream that is silent counts as lost: a server that hangs, or a network that drops everything, raises
 * no error.
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
    const address = '/api/v1/live' + (this.container === null ? '' : `?container=${encodeURIComponent(this.container)}`);
    const source = new EventSource(address);
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
    source.onerror = async () => {
      if (source !== this.source) return;
      if (performance.now() - opened > stall) {
        this.open(); // the server ends each stream after a minute
        return;
      }
      const why = source.readyState === EventSource.CLOSED ? await refusal(address) : ''; // else it would try again itself: no server
      if (source === this.source) this.again(why);
    };
  }

  close() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.source?.close();
    this.source = undefined;
  }

  /** again opens the stream after a wait that doubles, up to 8 s. why is the reason of a server that refuses it. */
  again(why = '') {
    this.close();
    this.say(why === '' ? 'lost' : 'refused', why);
    this.timer = setTimeout(() => this.open(), Math.min(8000, 500 * 2 ** this.tries++));
  }

  watch() {
    if (!this.source || this.recorded) return;
    if (performance.now() - this.heard > stall) this.again();
  }
}

/** refusal asks once more why the server refuses a stream: an EventSource does not tell. '' where it does so no longer. */
async function refusal(address) {
  const stop = new AbortController();
  try {
    const answer = await fetch(address, { signal: stop.signal });
    return answer.ok ? '' : (await answer.json()).error ?? '';
  } catch { // no server, or another one
    return '';
  } finally {
    stop.abort(); // a stream that is open after all
  }
}
