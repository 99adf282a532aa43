// Numbers in words. What is not measured is an en dash, and never 0. A number and its unit have a no-break space between them.

export const missing = '–';

const formats = [0, 1, 2, 3].map((digits) => new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }));

export const known = (value) => value !== null && value !== undefined;

/** count is a whole number. */
export const count = (n) => (known(n) ? formats[0].format(n) : missing);

/** cpus is a number of CPUs, without its unit. */
export const cpus = (n) => (known(n) ? formats[n >= 100 ? 1 : 2].format(n) : missing);

/** share is the number of CPUs that a quota per period is. */
export const share = (ns, period) => (known(ns) && period > 0 ? ns / period : null);

/** ms is a time in milliseconds, without its unit. */
export function ms(ns) {
  if (!known(ns)) return missing;
  const n = ns / 1e6;
  return formats[n > 0 && n < 10 ? 1 : 0].format(n);
}

/** span is a time with its unit. */
export function span(ns) {
  if (!known(ns)) return missing;
  if (ns === 0) return '0\u00a0s';
  if (ns < 1e6) return `${formats[ns < 1e4 ? 1 : 0].format(ns / 1e3)}\u00a0µs`;
  if (ns < 1e9) return `${ms(ns)}\u00a0ms`;
  if (ns < 120e9) return `${formats[ns < 10e9 ? 2 : 1].format(ns / 1e9)}\u00a0s`;
  if (ns < 7200e9) return `${formats[1].format(ns / 60e9)}\u00a0min`;
  return `${formats[1].format(ns / 3600e9)}\u00a0h`;
}

/** percent is a part of a whole, with as many digits as a small part needs. */
export function percent(part) {
  if (!known(part) || Number.isNaN(part)) return missing;
  const n = part * 100;
  if (n === 0) return '0\u00a0%';
  if (n < 0.001) return '<\u00a00.001\u00a0%';
  return `${formats[n < 0.1 ? 3 : n < 1 ? 2 : n < 10 ? 1 : 0].format(n)}\u00a0%`;
}

/** clock is the time of day. */
export function clock(time, tenths = false) {
  const t = new Date(time);
  const two = (n) => String(n).padStart(2, '0');
  const text = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  return tenths ? `${text}.${Math.floor(t.getMilliseconds() / 100)}` : text;
}

/** day is a date with its time of day. */
export const day = (time) => new Date(time).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

const causes = {
  'own-limit': 'own limit', 'pod-limit': "pod's limit", 'at-cap': 'at its cap', 'load-line': 'cut by load line', 'extra-cores': 'extra cores used', budget: 'budget spent', guard: 'node is full', refused: 'write refused',
  paused: 'paused', held: 'agent held', 'policy-none': 'policy none', 'refills-off': 'refills off',
};

/** cause is why a container stands still, in two words. */
export const cause = (word) => causes[word] ?? (word || '').replaceAll('-', ' ');

const long = {
  'own-limit': ['It is throttled by its own limit.', 'It was throttled by its own limit.'],
  'pod-limit': ['It is throttled by the limit of its pod.', 'It was throttled by the limit of its pod.'],
  'at-cap': ['It uses all that its policy permits in one period.', 'It used all that its policy permits in one period.'],
  'load-line': ['The node’s load line cuts what its policy permits.', 'The node’s load line cut what its policy permits.'],
  'extra-cores': ['An administrator’s bound on CPUs above limits is used up.', 'An administrator’s bound on CPUs above limits was used up.'],
  budget: ['The CPU time above the limit that its policy permits is spent.', 'The CPU time above the limit that its policy permits was spent.'],
  guard: ['The node has no CPU time to spare.', 'The node had no CPU time to spare.'],
  refused: ['The kernel refuses a write, or another program has written the file.', 'The kernel refused a write, or another program had written the file.'],
  paused: ['A person or a program has paused it.', 'A person or a program had paused it.'],
  held: ['The agent is held and writes nothing.', 'The agent was held and wrote nothing.'],
  'policy-none': ['Its policy asks for no burst and no raise.', 'Its policy asked for no burst and no raise.'],
  'refills-off': ['Refills have no effect here.', 'Refills had no effect here.'],
};

/** because is why a container lost most of its time, in a sentence: in the past where it loses none now, or by another cause. */
export const because = (row) => long[row.cause]?.[row.cause === row.cause_now ? 0 : 1] ?? '';

const waited = {
  own_limit: 'its own limit', pod_limit: 'a limit above it', neighbour: 'neighbours', kernel_threads: 'kernel threads', interrupts: 'interrupts', hypervisor: 'the hypervisor',
  idle_wakeup: 'an idle CPU that woke up', own_threads: 'its own threads', unnamed: 'not known',
};

/** waitedFor is a cause of waits in a few words. */
export const waitedFor = (word) => waited[word] ?? (word || '').replaceAll('_', ' ');
