// The rules that every page must keep, at the current width and in the current colour scheme. Returns a sentence for each fault.
() => {
  const faults = [];
  const name = (element) => {
    const text = (element.textContent || element.getAttribute("name") || "").trim().replace(/\s+/g, " ").slice(0, 40);
    const id = element.id ? "#" + element.id : element.classList.length ? "." + element.classList[0] : "";
    return `<${element.localName}${id}> ${text}`;
  };
  const fault = (rule, element) => faults.push(`${rule}: ${element instanceof Element ? name(element) : element}`);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const isVisible = (element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
  const shown = (selector) => all(selector).filter(isVisible);
  // The accessible name of a control, an image or a region. Has only the part of the algorithm that these pages need.
  const label = (element) => {
    const byId = (element.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean)
      .map((id) => document.getElementById(id)?.textContent || "").join(" ");
    const labels = [...(element.labels || [])].map((label) => label.textContent).join(" ");
    return (element.getAttribute("aria-label") || byId || labels).trim();
  };
  const isHidden = (element) => element.closest("[aria-hidden=true]") !== null;

  // The document
  if (!/^[a-z]{2}/.test(document.documentElement.lang)) fault("no lang", document.documentElement);
  if (!document.title.trim()) fault("no title", document.documentElement);
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth) {
    const edge = document.documentElement.clientWidth;
    const isScrolled = (element) => element
      && (getComputedStyle(element).overflowX !== "visible" || isScrolled(element.parentElement));
    const widest = shown("body *").find((element) =>
      element.getBoundingClientRect().right > edge + 1 && !isScrolled(element.parentElement));
    fault("scrolls sideways", widest || "the page");
  }
  const ids = all("[id]").map((element) => element.id);
  for (const id of ids.filter((id, place) => ids.indexOf(id) !== place)) fault("the same id twice", id);
  for (const kind of ["aria-labelledby", "aria-describedby", "for", "form"]) {
    for (const element of all(`[${kind}]`)) {
      for (const id of element.getAttribute(kind).split(/\s+/)) {
        if (!document.getElementById(id)) fault(`${kind} of nothing`, element);
      }
    }
  }
  if (shown("main").length !== 1) fault("not one main", document.body);
  for (const text of shown("body > *")) {
    if (!text.matches("header, nav, main, footer, aside, .skip, script")) fault("outside of the landmarks", text);
  }
  for (const kind of ["nav", "section[aria-labelledby]", "form[role=search]"]) {
    const found = shown(kind);
    if (found.length > 1 && new Set(found.map(label)).size < found.length) fault("landmarks of the same name", found[1]);
  }

  // Headings
  const headings = shown("h1, h2, h3, h4, h5, h6");
  if (headings.filter((heading) => heading.localName === "h1").length !== 1) fault("not one h1", document.body);
  let level = 0;
  for (const heading of headings) {
    const next = Number(heading.localName[1]);
    if (next > level + 1) fault(`a heading of level ${next} after ${level}`, heading);
    if (!heading.textContent.trim()) fault("an empty heading", heading);
    level = next;
  }

  // Names
  for (const input of shown("input:not([type=hidden]), select, textarea")) if (!label(input)) fault("no label", input);
  for (const group of shown("fieldset")) if (!group.querySelector("legend")?.textContent.trim()) fault("no legend", group);
  for (const image of shown("img, svg, [role=img]")) {
    const text = label(image) || image.getAttribute("alt") || image.querySelector(":scope > title")?.textContent;
    if (!isHidden(image) && !text && !image.hasAttribute("alt")) fault("no text for an image", image);
  }
  for (const control of shown("a[href], button, summary")) {
    if (!label(control) && !control.textContent.trim()) fault("a link or a button without text", control);
  }
  for (const link of all("a")) {
    if (!link.href) fault("a link that leads nowhere", link);
    else if (!["http:", "https:"].includes(new URL(link.href).protocol)) fault("a link of another scheme", link);
  }
  for (const form of all("form")) {
    if (new URL(form.action).origin !== location.origin) fault("a form for another origin", form);
  }
  for (const table of shown("table")) {
    if (!table.querySelector("th")) fault("no header cells", table);
    for (const cell of all("th", table)) if (!cell.hasAttribute("scope")) fault("a header cell without scope", cell);
    if (!label(table) && !table.caption?.textContent.trim()) fault("a table without caption", table);
  }

  // Contrast of texts and placeholders
  const parse = (text) => {
    const numbers = text.match(/-?[\d.]+(e-?\d+)?/g)?.map(Number) || [0, 0, 0, 0];
    const scale = text.startsWith("color(srgb") ? 255 : 1;
    return [...numbers.slice(0, 3).map((part) => part * scale), numbers[3] ?? 1];
  };
  const over = (front, back) => [0, 1, 2].map((part) => front[part] * front[3] + back[part] * (1 - front[3])).concat(1);
  const ground = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) layers.push(parse(getComputedStyle(each).backgroundColor));
    // The canvas below the page. Its colour depends on the colour scheme.
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches
      && getComputedStyle(document.documentElement).colorScheme.includes("dark");
    return layers.reduceRight((back, front) => over(front, back), isDark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };
  const light = (colour) => {
    const [red, green, blue] = colour.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const check = (element, colour) => {
    let opacity = 1;
    for (let each = element; each; each = each.parentElement) opacity *= Number(getComputedStyle(each).opacity);
    const back = ground(element);
    const front = over([...colour.slice(0, 3), colour[3] * opacity], back);
    const [less, more] = [light(front), light(back)].sort((one, other) => one - other);
    const ratio = (more + 0.05) / (less + 0.05);
    if (ratio < 4.5) fault(`contrast ${ratio.toFixed(2)}`, element);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || seen.has(element) || !isVisible(element)) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    // Text that is only for screen readers has no colour.
    if (style.clipPath !== "none" || element.closest(".hidden, :disabled, script, style, title")) continue;
    check(element, parse(element.closest("svg") ? style.fill : style.color));
  }
  for (const field of shown("input[placeholder], textarea[placeholder]")) {
    check(field, parse(getComputedStyle(field, "::placeholder").color));
  }

  // Values that an attacker sent must stay text.
  if (window.canary !== undefined) fault("a script of a value ran", "canary");
  for (const element of all("canary-x, [src*='canary.invalid'], [href*='canary.invalid']")) fault("a value became markup", element);
  for (const element of all("*")) {
    for (const attribute of element.attributes) if (/^on/.test(attribute.name)) fault("a handler in the markup", element);
  }
  if (/[\u0000-\u0008\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent)) fault("invisible characters", "the page");
  // Pages escape invisible characters for the reader. A form must not, because it would send the escapes as text.
  for (const field of all("input, textarea")) if (/\\u\{/.test(field.value)) fault("a value is escaped in a form", field);
  const shows = /.{0,20}(\{\{(?!7)|\bundefined\b|\bNaN\b|\[object |Optional\()/.exec(document.body.innerText);
  if (shows) fault("the template shows", shows[0]);
  return faults;
}
