// Follows the keyboard focus. `start` notes how elements look without the focus. `stop` returns the faults of the focused element.
({
  look(element) {
    const style = getComputedStyle(element);
    return [style.outlineStyle === "none" ? "" : style.outlineStyle + style.outlineWidth + style.outlineColor, style.boxShadow].join();
  },
  start() {
    // Makes the next Tab go to the first focusable element of the page, wherever the focus was.
    const first = document.createElement("span");
    first.tabIndex = -1;
    document.body.prepend(first);
    first.focus();
    first.remove();
    scrollTo(0, 0);
    const wanted = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter((element) =>
      element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) && !element.disabled && element.tabIndex >= 0
      && element.type !== "hidden" && !(element.type === "radio" && !element.checked));
    window.focusCheck = { wanted, looks: new Map(wanted.map((element) => [element, this.look(element)])), reached: [] };
    return wanted.length;
  },
  stop() {
    const { wanted, looks, reached } = window.focusCheck;
    const element = document.activeElement;
    const name = `<${element.localName}> ${(element.textContent || element.name || "").trim().slice(0, 40)}`;
    if (element === document.body || reached.includes(element)) {
      return { done: true, faults: wanted.filter((each) => !reached.includes(each)).map((each) =>
        `the keyboard does not reach <${each.localName}> ${(each.textContent || each.name || "").trim().slice(0, 40)}`) };
    }
    const faults = [];
    const last = reached.at(-1);
    if (last && !(last.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) faults.push(`the focus goes back to ${name}`);
    if (looks.has(element) && looks.get(element) === this.look(element)) faults.push(`the focus cannot be seen on ${name}`);
    const box = element.getBoundingClientRect();
    if (box.width < 1 || box.bottom < 0 || box.top > innerHeight) faults.push(`the focus is out of sight on ${name}`);
    reached.push(element);
    return { done: false, faults };
  },
})
