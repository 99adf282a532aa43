// Work that may wait is done one piece a frame, so that none of them is late.

const queue = [];

/** frame does a piece of work in a frame of its own, after what was asked for before. */
export function frame(work) {
  queue.push(work);
  if (queue.length === 1) requestAnimationFrame(next);
}

function next() {
  try {
    queue[0]();
  } finally {
    queue.shift();
    if (queue.length > 0) requestAnimationFrame(next);
  }
}
