/// The stylesheet of the pages.
enum Stylesheet {
    static let text = #"""
        :root {
          color-scheme: light dark;
          --ground: #fbfbfa; --surface: #ffffff; --line: #d9dad7; --text: #1d2024; --soft: #5b6068;
          --accent: #1d5fa7; --on-accent: #ffffff; --good: #1a6e3c; --warn: #8a5300; --bad: #b3261e; --dark: #55407a;
          --good-ground: #e7f4eb; --warn-ground: #fdf1dc; --bad-ground: #fceae8; --plain-ground: #eff0ee;
          --mono: ui-monospace, "SF Mono", "Cascadia Mono", "Roboto Mono", Menlo, Consolas, monospace;
          --radius: 8px; --edge: max(1rem, 3vw, 50vw - 42rem + 3vw);
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --ground: #15171a; --surface: #1d2024; --line: #3a3f46; --text: #e8eaed; --soft: #a8aeb7;
            --accent: #8bbdf2; --on-accent: #10233a; --good: #7fd19b; --warn: #f0b95c; --bad: #ff9a91; --dark: #bda6ea;
            --good-ground: #16301f; --warn-ground: #37290f; --bad-ground: #3f1d1a; --plain-ground: #282c31;
          }
        }
        *, *::before, *::after { box-sizing: border-box; }
        html { -webkit-text-size-adjust: 100%; }
        body {
          margin: 0; min-height: 100vh; display: flex; flex-direction: column;
          background: var(--ground); color: var(--text); overflow-wrap: break-word;
          font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
        }
        h1 { font-size: 1.6rem; line-height: 1.25; margin: .25rem 0 1rem; overflow-wrap: anywhere; }
        h2 { font-size: 1.15rem; margin: 2rem 0 .75rem; }
        h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
        p { margin: 0 0 .75rem; max-width: 72ch; }
        a { color: var(--accent); text-underline-offset: .15em; }
        code, pre { font-family: var(--mono); font-size: .9em; }
        code { overflow-wrap: anywhere; }
        small, .soft { color: var(--soft); font-size: .9em; }
        ul, ol { padding-left: 1.25rem; }
        :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
        main:focus { outline: none; }
        .hidden {
          position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
        }
        .skip { position: absolute; left: .5rem; top: -4rem; background: var(--surface); padding: .5rem 1rem; z-index: 2; }
        .skip:focus { top: .5rem; }

        /* Frame */
        .top {
          display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1.5rem; padding: .5rem var(--edge);
          background: var(--surface); border-bottom: 1px solid var(--line);
        }
        .brand { font-weight: 650; color: var(--text); text-decoration: none; padding: .5rem 0; }
        .top nav { flex: 1 1 auto; }
        .top ul { display: flex; flex-wrap: wrap; gap: .25rem; list-style: none; margin: 0; padding: 0; }
        .top nav a {
          display: block; padding: .5rem .75rem; color: var(--text); text-decoration: none;
          border-block: 3px solid transparent;
        }
        .top nav a:hover { background: var(--plain-ground); }
        .top nav a[aria-current] { border-bottom-color: var(--accent); font-weight: 600; }
        .person {
          display: flex; gap: .35rem; max-width: min(100%, 24rem); color: var(--text); text-decoration: none; padding: .5rem 0;
        }
        .person span:first-child { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; text-decoration: underline; text-underline-offset: .15em; }
        .role { color: var(--soft); }
        main { flex: 1; width: 100%; padding: 1.25rem var(--edge) 3rem; }
        .bottom { padding: 1rem var(--edge); border-top: 1px solid var(--line); color: var(--soft); font-size: .875rem; }
        .bottom p { margin: 0; max-width: none; }
        .narrow { max-width: 36rem; margin: 6vh auto 0; }
        .crumbs { margin: 0; font-size: .9rem; }
        .columns { display: grid; gap: 0 2.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }

        /* Words that say how things are; the mark in front does not need colour. */
        .headline { border-left: 6px solid var(--soft); border-radius: 3px; padding: .75rem 1rem; background: var(--plain-ground); }
        .good.headline { border-color: var(--good); background: var(--good-ground); }
        .warn.headline { border-color: var(--warn); background: var(--warn-ground); }
        .bad.headline { border-color: var(--bad); background: var(--bad-ground); }
        .concerns, .checks, .plain { list-style: none; margin: 0; padding: 0; }
        .concerns li, .plain li { padding: .5rem 0; border-bottom: 1px solid var(--line); }
        .checks { display: grid; gap: 0 1.5rem; }
        .checks li { display: flex; flex-wrap: wrap; gap: 0 .5rem; padding: .35rem 0; border-bottom: 1px solid var(--line); }
        .checks .name { flex: 1 1 8rem; }
        .checks .soft { flex-basis: 100%; }
        .checks .state::before { content: "● "; }
        .checks .warn .state::before { content: "▲ "; }
        .checks .bad .state::before { content: "■ "; }
        .good .state, .status.registered { color: var(--good); }
        .warn .state, .status.pending { color: var(--warn); }
        .bad .state, .status.rejected, .status.revoked { color: var(--bad); }
        .status { font-weight: 600; white-space: nowrap; }
        .status::before { content: "○ "; }
        .status.registered::before { content: "● "; }
        .status.pending::before { content: "▲ "; }
        .status.rejected::before { content: "■ "; }
        .status.revoked::before { content: "✕ "; }
        .tag {
          display: inline-block; padding: 0 .5rem; border: 1px solid var(--line); border-radius: 999px;
          background: var(--plain-ground); font-size: .875em; overflow-wrap: anywhere;
        }
        .bad > .tag { border-color: var(--bad); color: var(--bad); background: var(--bad-ground); }
        .warn > .tag, .tag.warn { border-color: var(--warn); color: var(--warn); background: var(--warn-ground); }
        .problem, .notice { padding: .75rem 1rem; border: 1px solid; border-radius: var(--radius); margin-bottom: 1.25rem; }
        .problem { border-color: var(--bad); background: var(--bad-ground); max-width: none; }
        .notice { border-color: var(--good); background: var(--good-ground); }
        .notice p:last-child, .problem p:last-child { margin: 0; }
        .notice > details:last-child { margin-bottom: 0; }
        .empty {
          padding: 1.5rem; border: 1px dashed var(--line); border-radius: var(--radius); background: var(--surface);
          margin: 1rem 0;
        }
        .empty p:last-child { margin: 0; }

        /* Forms */
        label { display: block; font-weight: 600; margin-bottom: .25rem; }
        label.check { font-weight: 400; }
        input, select, button, .button, textarea { font: inherit; color: inherit; }
        input:not([type=checkbox], [type=radio], [type=hidden]), select, textarea {
          width: 100%; min-height: 2.75rem; padding: .5rem .75rem; background: var(--surface);
          border: 1px solid var(--soft); border-radius: var(--radius);
        }
        input[type=checkbox], input[type=radio] { width: 1.15rem; height: 1.15rem; margin-left: 0; vertical-align: -.15em; }
        ::placeholder { color: var(--soft); opacity: 1; }
        [aria-invalid=true] { border-color: var(--bad) !important; }
        .hint { color: var(--soft); font-size: .9rem; margin: .25rem 0 0; }
        .field { margin: 0 0 1rem; }
        .change .field, .narrow form { max-width: 36rem; }
        fieldset { min-width: 0; margin: 0; padding: .5rem .75rem; border: 1px solid var(--line); border-radius: var(--radius); }
        legend { font-weight: 600; padding: 0 .25rem; }
        fieldset .check { overflow-wrap: anywhere; padding: .25rem 0; margin: 0; }
        .narrow button { margin-top: 1rem; }
        .filters { display: flex; flex-wrap: wrap; gap: .75rem; align-items: end; margin-bottom: 1.25rem; }
        .filters .field { flex: 1 1 11rem; max-width: 22rem; margin: 0; }
        .filters .check { display: flex; align-items: center; gap: .5rem; min-height: 2.75rem; margin: 0; }
        .filters .wide { flex-basis: 28rem; max-width: none; }
        button, .button {
          display: inline-flex; align-items: center; justify-content: center; min-height: 2.75rem; padding: .5rem 1rem;
          background: var(--surface); border: 1px solid var(--soft); border-radius: var(--radius); cursor: pointer;
          text-decoration: none; color: var(--text);
        }
        button:hover, .button:hover { background: var(--plain-ground); }
        button.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
        .button.danger { border-color: var(--bad); color: var(--bad); font-weight: 600; }
        button.danger { background: var(--bad); border-color: var(--bad); color: var(--surface); font-weight: 600; }
        button.primary:hover, button.danger:hover { filter: brightness(1.1); }
        .buttons { display: flex; flex-wrap: wrap; gap: .5rem; margin-bottom: .75rem; }
        .facts + .buttons, table + .buttons { margin-top: 1rem; }
        .facts + p, table + p { margin-top: .75rem; }
        td.buttons { display: table-cell; }
        td.buttons .button { margin-bottom: .25rem; white-space: nowrap; }
        td.buttons .button, tbody th button { min-height: 2.25rem; padding: .25rem .6rem; }

        /* Tables */
        table { width: 100%; border-collapse: collapse; background: var(--surface); font-variant-numeric: tabular-nums; }
        table:not(:has(tbody tr)) { display: none; }
        table { border: 1px solid var(--line); border-radius: var(--radius); }
        th, td { padding: .6rem .5rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
        th.buttons { display: table-cell; min-width: 11.5rem; }
        thead th { font-size: .875rem; color: var(--soft); font-weight: 600; white-space: nowrap; }
        tbody th { min-width: 14rem; font-weight: 500; overflow-wrap: anywhere; }
        tbody tr:last-child > * { border-bottom: 0; }
        tbody tr:hover { background: var(--plain-ground); }
        td small { display: block; }
        td code { overflow-wrap: break-word; }
        td time { white-space: nowrap; }
        .record { table-layout: fixed; }
        .record td, .record th, .long { overflow-wrap: anywhere; }
        .long { min-width: 10rem; }
        .number { text-align: right; }
        .facts { margin: 0; }
        .facts > div {
          display: grid; grid-template-columns: minmax(8rem, 14rem) 1fr; gap: .5rem 1rem; padding: .4rem 0;
          border-bottom: 1px solid var(--line);
        }
        .facts dt { color: var(--soft); }
        .facts dd { margin: 0; overflow-wrap: anywhere; }
        .pages { margin: 1rem 0; }

        /* Time lines */
        .events { list-style: none; margin: 0; padding: 0 0 0 1rem; border-left: 2px solid var(--line); }
        .event { position: relative; padding: .25rem 0 1rem .5rem; }
        .event::before {
          content: ""; position: absolute; left: calc(-1rem - 6px); top: .75rem; width: 10px; height: 10px;
          background: var(--surface); border: 2px solid var(--soft); border-radius: 50%;
        }
        .event.good::before { background: var(--good); border-color: var(--good); }
        .event.bad::before { background: var(--bad); border-color: var(--bad); border-radius: 0; }
        .event p { margin: 0; max-width: none; overflow-wrap: anywhere; }
        details.detail { margin: 0; overflow-wrap: anywhere; }
        .detail .value { font-family: var(--mono); font-size: .85em; }

        /* Charts */
        .chart { margin: 0 0 1rem; padding: 1rem; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
        .chart svg { display: block; width: 100%; height: 10rem; }
        .chart rect.good { fill: var(--good); }
        .chart rect.warn { fill: var(--warn); }
        .chart rect.bad { fill: var(--bad); }
        .chart rect.dark { fill: var(--dark); }
        .axis {
          display: flex; justify-content: space-between; gap: 1rem; max-width: none; margin: .35rem 0 0;
          border-top: 1px solid var(--line); color: var(--soft); font-size: .8125rem;
        }
        .chart figcaption { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin-top: .5rem; }
        .key::before { content: ""; display: inline-block; width: .75rem; height: .75rem; margin-right: .4rem; background: var(--soft); }
        .key.good::before { background: var(--good); }
        .key.warn::before { background: var(--warn); }
        .key.bad::before { background: var(--bad); }
        .key.dark::before { background: var(--dark); }

        /* Commands */
        details { margin: 1rem 0; }
        summary { cursor: pointer; color: var(--accent); padding: .25rem 0; }
        pre {
          margin: 0 0 .75rem; padding: .75rem 1rem; overflow-x: auto; background: var(--plain-ground);
          border-radius: var(--radius); line-height: 1.45;
        }
        pre code { overflow-wrap: normal; }
        .commands p { margin: .75rem 0 .25rem; color: var(--soft); }
        .copy { min-height: 1.75rem; padding: 0 .6rem; margin-left: .5rem; font-size: .8125rem; }
        .commands > .copy { margin: 0 0 .25rem; }

        @media (max-width: 44rem) {
          table.cards, .cards tbody, .cards tr, .cards th, .cards td { display: block; width: 100%; }
          .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
          tbody th { min-width: 0; }
          .cards tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
          .cards tr:last-child { border-bottom: 0; }
          .cards tbody th, .cards td { border: 0; padding: .2rem .75rem; text-align: left; }
          .cards td { display: flow-root; min-height: 1.9rem; padding-left: 8rem; overflow-wrap: anywhere; }
          .cards td::before {
            content: attr(data-label); float: left; width: 7rem; margin-left: -7.25rem; color: var(--soft); font-size: .875rem;
          }
          .cards td:empty { display: none; }
          .facts > div { grid-template-columns: 1fr; gap: 0; }
          .top nav { order: 3; flex-basis: 100%; }
          .person { margin-left: auto; }
          .axis span:nth-child(2) { display: none; }
        }
        @media (prefers-reduced-motion: no-preference) {
          button, .button, .top nav a { transition: background-color .12s; }
        }
        @media (forced-colors: active) {
          .status, .tag, .headline { border: 1px solid; }
        }
        @media print {
          .top nav, .filters, .buttons, .skip { display: none; }
        }
        """#
}
