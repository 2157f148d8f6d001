extension Stylesheet {
    /// The colors of a chart's groups, and the rules that only the pages about history, refusals and app records need.
    static let further = #"""
        :root {
          --group-0: #1d5fa7; --group-1: #b3261e; --group-2: #1a6e3c; --group-3: #8a5300; --group-4: #55407a;
          --group-5: #00696e; --group-6: #9c2f6d; --group-7: #4a5a10; --group-8: #6b7078;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --group-0: #8bbdf2; --group-1: #ff9a91; --group-2: #7fd19b; --group-3: #f0b95c; --group-4: #bda6ea;
            --group-5: #6fd0d4; --group-6: #f08cc4; --group-7: #c3d46a; --group-8: #a8aeb7;
          }
        }
        .group-0 { fill: var(--group-0); } .group-1 { fill: var(--group-1); } .group-2 { fill: var(--group-2); }
        .group-3 { fill: var(--group-3); } .group-4 { fill: var(--group-4); } .group-5 { fill: var(--group-5); }
        .group-6 { fill: var(--group-6); } .group-7 { fill: var(--group-7); } .group-8 { fill: var(--group-8); }
        .ink { stroke: var(--surface); stroke-width: 1.5; fill: none; }
        .dot { fill: var(--surface); }
        .chart svg.marks { height: 1.25rem; }
        .marks text { fill: var(--text); font-size: .8125rem; }
        .marker { stroke: var(--text); stroke-width: 1.5; stroke-dasharray: 4 3; }
        .numbered { list-style: decimal; padding-left: 2rem; overflow-wrap: anywhere; }
        .swatch { display: inline-flex; align-items: center; gap: .4rem; overflow-wrap: anywhere; }
        .swatch svg { display: inline-block; width: 14px; height: 14px; flex: none; }
        .scroll { overflow-x: auto; }
        textarea.code { font-family: var(--mono); font-size: .875rem; min-height: 28rem; tab-size: 2; white-space: pre; }
        .group { margin: 1rem 0; }
        .members { margin-top: .75rem; }
        .group:has(> .check input:not(:checked)) > .members:not(:has(:invalid)) { display: none; }
        .record-form details { padding-left: .75rem; border-left: 1px solid var(--line); }
        .record-form details:has(:invalid)::details-content { content-visibility: visible; block-size: auto; }
        .record-form .field { max-width: 48rem; }
        .record-form label { overflow-wrap: anywhere; }
        .record-form textarea { font-family: var(--mono); font-size: .875rem; }
        .record-form [readonly] { background: var(--plain-ground); }
        .wrong { margin: 0; color: var(--bad); font-weight: 600; }
        .diff { padding: .75rem 0; }
        .diff span { display: block; padding: 0 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
        .diff .added { background: var(--good-ground); }
        .diff .removed { background: var(--bad-ground); }
        .lines { display: block; white-space: pre-wrap; }
        .choice { border: 0; margin: 0; padding: 0; }
        .steps { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; padding: 0 0 0 1.25rem; margin: 0 0 1rem; color: var(--soft); }
        .steps li { margin-right: 1rem; }
        .steps [aria-current] { color: var(--text); font-weight: 600; }
        .choice label { padding: .25rem 0; }
        .secret { border: 2px solid var(--warn); user-select: all; overflow-wrap: anywhere; white-space: pre-wrap; }

        """#
}
