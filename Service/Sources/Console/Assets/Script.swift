/// The script of the pages. Every page works without it.
enum Script {
    static let text = #"""
        "use strict";
        // Reads the page again and replaces its live parts. The service escapes all values of a page.
        (() => {
          const seconds = Number(document.body.dataset.refresh);
          const state = document.querySelector("[data-live-state]");
          const say = (text) => { if (state) state.textContent = text; };
          let timer = 0;
          const refresh = async () => {
            if (document.hidden) return;
            // A reader who types, selects or has opened a part is not disturbed.
            if (document.querySelector("[data-live] details[open], [data-live] :focus")) return;
            try {
              const answer = await fetch(location.href, {
                headers: { "X-Synheart-Refresh": "1" }, redirect: "manual", cache: "no-store", credentials: "same-origin",
              });
              if (answer.type === "opaqueredirect") {
                clearInterval(timer);
                say(" · You are signed out. Reload the page.");
                return;
              }
              if (!answer.ok) throw new Error(String(answer.status));
              const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
              for (const part of document.querySelectorAll("[data-live]")) {
                const found = fresh.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
                if (found) part.replaceChildren(...found.childNodes);
              }
              const read = fresh.querySelector("footer time");
              const shown = document.querySelector("footer time");
              if (read && shown) shown.replaceWith(read);
              say(` · refreshed every ${seconds} seconds`);
            } catch {
              say(" · The service did not answer. These are older numbers.");
            }
          };
          if (seconds > 0) timer = setInterval(refresh, seconds * 1000);
          // A filter is applied as soon as it is chosen.
          for (const form of document.querySelectorAll("form.filters")) {
            for (const select of form.querySelectorAll("select")) select.addEventListener("change", () => form.requestSubmit());
          }
          // All devices of the page can be selected at once.
          const bulk = document.getElementById("bulk");
          if (bulk) {
            const button = document.createElement("button");
            button.type = "button";
            button.textContent = "Select all";
            button.addEventListener("click", () => {
              const boxes = [...bulk.elements].filter((box) => box.type === "checkbox");
              const all = boxes.every((box) => box.checked);
              for (const box of boxes) box.checked = !all;
            });
            bulk.prepend(button);
          }
          // A command can be copied.
          for (const block of document.querySelectorAll(".commands pre")) {
            const button = document.createElement("button");
            button.type = "button";
            button.className = "copy";
            button.textContent = "Copy";
            button.addEventListener("click", async () => {
              await navigator.clipboard.writeText(block.querySelector("code").textContent);
              button.textContent = "Copied";
              setTimeout(() => { button.textContent = "Copy"; }, 2000);
            });
            if (block.previousElementSibling) block.previousElementSibling.append(button);
            else block.before(button);
          }
          // A draft of a record is checked while a person types: the field at once, and the record by the service.
          const draft = document.querySelector(".record-form");
          if (draft) {
            const isWrong = (field) => {
              if (!field.validity.valid) return true;
              const { minimum, maximum = Infinity } = field.dataset;
              if (minimum && field.value) return Number(field.value) < minimum || Number(field.value) > maximum;
              if (!("json" in field.dataset)) return false;
              try { JSON.parse(field.value); } catch { return true; }
              return false;
            };
            const tell = (field, text) => {
              const place = document.getElementById(`problem.${field.dataset.member}`);
              if (place.textContent !== text) place.textContent = text;
              if (text) field.setAttribute("aria-invalid", "true");
              else field.removeAttribute("aria-invalid");
            };
            let [timer, running] = [0, null];
            const check = async () => {
              if (running) return later();
              running = new AbortController();
              try {
                const body = new URLSearchParams(new FormData(draft));
                const answer = await fetch(draft.action, {
                  method: "POST", body: body.toString(), signal: running.signal,
                  headers: { "Content-Type": "application/x-www-form-urlencoded", "X-Synheart-Check": "1" },
                  redirect: "manual", cache: "no-store", credentials: "same-origin",
                });
                if (answer.type === "opaqueredirect") {
                  const ended = document.createElement("p");
                  ended.textContent = "You are signed out. Copy what you need, reload the page and sign in.";
                  const place = document.getElementById("checked");
                  place.className = "problem";
                  place.replaceChildren(ended);
                  return;
                }
                // The service has no room now. Another answer says nothing about the draft; sending the form does.
                if (answer.status === 429 || answer.status >= 500) later(3000);
                if (!answer.ok) return;
                const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("checked");
                const found = new Map([...fresh.querySelectorAll("[data-member]")]
                  .map((problem) => [problem.dataset.member, problem.querySelector("span").textContent]));
                const place = document.getElementById("checked");
                place.className = fresh.children.length ? "problem" : "";
                place.replaceChildren(...fresh.children);
                for (const field of draft.querySelectorAll("[data-rule]")) {
                  tell(field, isWrong(field) ? field.dataset.rule : found.get(field.dataset.member) || "");
                }
              } catch {
                // The service did not answer, or the person sends the form.
              } finally {
                running = null;
              }
            };
            const later = (pause = 700) => {
              clearTimeout(timer);
              timer = setTimeout(check, pause);
            };
            draft.addEventListener("input", ({ target }) => {
              if (target.dataset.rule) tell(target, isWrong(target) ? target.dataset.rule : "");
              later();
            });
            draft.addEventListener("submit", () => {
              clearTimeout(timer);
              running?.abort();
            });
          }
        })();
        """#
}
