// The page: it opens the stream, and shows either all containers or one. The address after # says which.

import { h, mark, say } from './dom.js';
import { clock, day } from './format.js';
import { frame } from './frames.js';
import { apply, empty, strip } from './store.js';
import { Colocation } from './colocation.js';
import { Container } from './container.js';
import { Live } from './live.js';
import { Node } from './node.js';
import { Table } from './table.js';

const at = (id) => document.getElementById(id);
const page = { sentence: at('sentence'), node: at('node'), live: at('live'), word: at('live').lastElementChild, banner: at('banner'), main: at('main'), shown: at('shown'), foot: at('foot'), share: at('share') };

const state = empty();
const node = new Node(), colocation = new Colocation();
const table = new Table((id) => { location.hash = `#/c/${encodeURIComponent(id)}`; });
const all = h('div', { class: 'all' }, node.element, table.element, colocation.element); // it stays in the document, so that its layout does
const narrow = matchMedia('(max-width: 760px)');
let container = null, condition = 'connecting', refusal = '', asked = false;

const live = new Live({
  event(name, data) {
    apply(state, name, data);
    soon();
  },
  condition(word, why = '') {
    if (word === condition && why === refusal) return;
    [condition, refusal] = [word, why];
    soon();
  },
});

/** soon shows what is new, once before the next frame. */
function soon() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    show();
  });
}

/** arrange puts the table first where one has to scroll for what comes second. The keyboard and readers have the same order. */
function arrange() {
  table.element[narrow.matches ? 'after' : 'before'](node.element);
}

function show() {
  condition_();
  const view = state.view;
  if (view === null) return;
  live.recorded = Boolean(view.recorded);
  say(page.sentence, view.sentence);
  say(page.node, `${view.node || 'this node'} at ${clock(view.now)}`);
  mark(page.node, 'title', view.node || null);
  const title = container === null ? `${view.node || 'node'} · Plimsoll` : `${state.rows.get(container.id)?.name ?? container.id} · Plimsoll`;
  if (document.title !== title) document.title = title;
  say(page.foot, `Plimsoll ${view.version} · Linux ${view.kernel} · cgroup ${view.cgroup} · keys: / searches, ↑ ↓ and Enter open a container, Esc goes back`);
  if (container !== null) {
    container.show(state);
    return;
  }
  table.show(state);
  frame(() => { node.show(view); colocation.show(view, state.rows); });
}

const words = { connecting: 'connecting', live: 'live', lost: 'no server', refused: 'refused', paused: 'paused' };

/** condition_ says whether what is shown is of now. A requestAnimationFrame does not come while the page is hidden. */
function condition_() {
  const lost = condition === 'live' && !state.agent.ok ? 'agent' : condition;
  const recorded = state.view?.recorded;
  const away = lost === 'lost' || lost === 'refused';
  const kind = recorded && !away ? 'recorded' : lost;
  mark(page.live, 'data-state', kind);
  say(page.word, { agent: 'no agent', recorded: 'recording' }[kind] ?? words[kind]);
  mark(document.body, 'data-stale', kind === 'agent' || away ? '' : null);
  const when = state.view === null ? '' : ` What is shown is of ${clock(state.view.now)}.`;
  const text = {
    agent: `The agent does not answer${state.agent.why ? `: ${state.agent.why}` : ''}.${when}`,
    lost: `No news from plimsoll serve. This page tries again.${when}`,
    refused: `plimsoll serve refuses: ${refusal}. This page tries again.${when}`,
    recorded: `A recording of ${state.view?.node || 'a node'}, made ${recorded ? day(recorded) : ''}. Nothing here is live.`,
  }[kind] ?? '';
  say(page.banner, text);
  page.banner.hidden = text === '';
  mark(page.banner, 'data-kind', kind);
}

/** route shows what the address says. */
function route() {
  const m = /^#\/c\/(.+)$/.exec(location.hash);
  let id = null;
  try {
    id = m ? decodeURIComponent(m[1]) : null;
  } catch { // not written by this page
    id = null;
  }
  const left = container?.id;
  container?.destroy();
  [state.detail, state.strip] = [null, strip()];
  container = id === null ? null : new Container(id);
  all.classList.toggle('aside', container !== null);
  page.sentence.hidden = container !== null; // it is mostly about another one
  while (all.nextSibling) all.nextSibling.remove();
  if (container) page.shown.append(container.element);
  live.show(id);
  soon();
  const shown = container;
  frame(() => {}); // the layout is done before what follows, and not twice
  frame(() => {
    if (shown !== container) return;
    scrollTo(0, 0);
    if (container) container.title.focus({ preventScroll: true });
    else if (left !== undefined) table.back(left);
  });
}

page.shown.append(all);
arrange();
narrow.addEventListener('change', arrange);
addEventListener('hashchange', route);
addEventListener('keydown', (e) => {
  const typing = e.target.matches('input, select, textarea');
  if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey && !e.altKey && container === null) {
    e.preventDefault();
    table.search.focus();
  } else if (e.key === 'Escape' && container !== null) {
    location.hash = '#/';
  } else if (e.key === 'Escape' && typing && e.target === table.search) {
    table.search.value = '';
    table.search.dispatchEvent(new Event('input'));
    table.search.blur();
  }
});

document.querySelector('.skip').addEventListener('click', (e) => {
  e.preventDefault(); // the address says which container is shown
  if (container === null) table.focus(table.at);
  else page.main.focus();
});

route();
