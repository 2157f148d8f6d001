extension Templates {
    static let history = #"""
        <h1>History</h1>
        <form method="get" action="/console/history" class="filters" role="search">
        <div class="field"><label for="period">Time</label>
        <select id="period" name="period">{{#periods}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/periods}}</select></div>
        <div class="field"><label for="by">By</label>
        <select id="by" name="by">{{#groups}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/groups}}</select></div>
        <div class="field"><label for="app">App</label>
        <select id="app" name="app">{{#apps}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/apps}}</select></div>
        <div class="field"><label for="kind">Kind</label>
        <select id="kind" name="kind">{{#kinds}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/kinds}}</select></div>
        <div class="field"><label for="platform">Platform</label>
        <select id="platform" name="platform">{{#platforms}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/platforms}}</select></div>
        <div class="field"><label for="scheme">Scheme</label>
        <select id="scheme" name="scheme">{{#schemes}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/schemes}}</select></div>
        <div class="field"><label for="code">Code</label>
        <input id="code" name="code" value="{{code}}" spellcheck="false" autocomplete="off" placeholder="verified"></div>
        <div class="field"><label for="version">Version</label>
        <input id="version" name="version" value="{{version}}" spellcheck="false" autocomplete="off"></div>
        <label class="check"><input type="checkbox" name="compare" value="yes"{{#compares}} checked{{/compares}}> With the time before</label>
        <button>Show</button>
        </form>
        {{#isIncomparable}}
        <p class="soft">Counts are kept for 90 days, so there is no time before the last 90 days to compare with.</p>
        {{/isIncomparable}}
        {{#problem}}
        <p class="problem" role="alert">{{.}}</p>
        {{/problem}}
        {{#isEmpty}}{{^problem}}
        <div class="empty">
        {{#isFiltered}}<p>Nothing was counted for this. <a href="/console/history">Show everything of the last day</a>.</p>{{/isFiltered}}
        {{^isFiltered}}<p>Nothing was counted in this time. Each verdict on a request or a registration appears here within a minute.</p>{{/isFiltered}}
        </div>
        {{/problem}}{{/isEmpty}}
        {{^isEmpty}}
        {{>patterns}}
        <div class="columns">
        {{#charts}}
        {{>stacked}}
        {{/charts}}
        </div>
        {{#changes}}
        {{>markers}}
        {{/changes}}
        <h2>Totals</h2>
        <table>
        <caption class="hidden">Totals of each group</caption>
        <thead><tr><th scope="col">Group</th><th scope="col" class="number">Count</th>{{#compares}}<th scope="col" class="number">Before</th><th scope="col" class="number">Change</th>{{/compares}}</tr></thead>
        <tbody>
        {{#rows}}
        <tr><th scope="row">{{name}}</th><td class="number">{{total}}</td>{{#before}}<td class="number">{{total}}</td><td class="number">{{change}}</td>{{/before}}</tr>
        {{/rows}}
        </tbody>
        </table>
        {{#steps}}
        <details><summary>The numbers of each bar</summary>
        <div class="scroll" tabindex="0" role="region" aria-label="The numbers of each bar">
        <table>
        <caption class="hidden">Counts of each group by time</caption>
        <thead><tr><th scope="col">From</th>{{#names}}<th scope="col" class="number">{{.}}</th>{{/names}}</tr></thead>
        <tbody>
        {{#rows}}
        <tr><th scope="row">{{time}}</th>{{#counts}}<td class="number">{{.}}</td>{{/counts}}</tr>
        {{/rows}}
        </tbody>
        </table>
        </div>
        </details>
        {{/steps}}
        <p class="pages"><a class="button" href="{{download}}" download>Download as CSV</a></p>
        {{/isEmpty}}
        {{#commands}}
        <details><summary>These counts in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#
}
