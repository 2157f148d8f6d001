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
        })();
        """#
}
