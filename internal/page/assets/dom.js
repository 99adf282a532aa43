// Elements. A child that is a string becomes a text node: a name of a container is never parsed as HTML.

/** h makes an element: properties that are functions are listeners, the others attributes; null and false are left out. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** s makes an SVG element. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** say sets an element's text, and touches the document only where it differs. */
export function say(element, text) {
  if (element.firstChild === null) element.append(text);
  else if (element.firstChild.data !== text) element.firstChild.data = text;
}

/** mark sets or removes an attribute, and touches the document only where it differs. */
export function mark(element, name, value) {
  if (value === null || value === false || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

/** renew replaces an element's children where what they are made from has changed. */
export function renew(element, from, make) {
  const key = JSON.stringify(from) ?? '';
  if (element.madeFrom === key) return;
  element.madeFrom = key;
  element.replaceChildren(...[make()].flat().filter((child) => child !== null && child !== undefined && child !== false));
}

/** command is a command to run, with a button that copies it. */
export function command(text) {
  const code = h('code', {}, text);
  const button = h('button', { type: 'button', class: 'copy', 'aria-label': `copy the command ${text}`, click: () => copy(text, code, button) }, 'Copy');
  return h('span', { class: 'command' }, code, button);
}

async function copy(text, code, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch { // no permission, or no secure context: the person presses Ctrl-C
    getSelection().selectAllChildren(code);
    button.textContent = 'Selected';
  }
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}
