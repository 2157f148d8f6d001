extension Templates {
    static let devices = #"""
        <h1>{{page.title}}</h1>
        <form method="get" action="/console/devices" class="filters" role="search">
        <div class="field"><label for="device">Device id, or its hash in the log</label>
        <input id="device" name="device" value="{{device}}" spellcheck="false" autocomplete="off" placeholder="7d0f6c1a-…"></div>
        <div class="field"><label for="app">App</label>
        <select id="app" name="app">{{#apps}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/apps}}</select></div>
        <div class="field"><label for="status">Status</label>
        <select id="status" name="status">{{#statuses}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/statuses}}</select></div>
        <div class="field"><label for="platform">Platform</label>
        <select id="platform" name="platform">{{#platforms}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/platforms}}</select></div>
        <button>Show</button>
        </form>
        {{#problem}}
        <p class="problem" role="alert">{{.}}</p>
        {{/problem}}
        {{^isEmpty}}
        {{#isQueue}}{{#waiting}}
        <p>{{#count}}Devices that wait: {{.}}. {{/count}}The first has waited since {{#since}}{{>time}}{{/since}}.</p>
        {{/waiting}}{{/isQueue}}
        {{#bulk}}
        {{#action}}
        <form method="get" action="{{.}}" id="bulk" class="buttons bulk" aria-label="Decide about the selected devices">
        {{#decisions}}
        <button name="decision" value="{{value}}">{{label}} the selected devices…</button>
        {{/decisions}}
        </form>
        {{/action}}
        {{^action}}
        <p class="soft">Choose an app to decide about several devices at once.</p>
        {{/action}}
        {{/bulk}}
        <table class="cards">
        <caption class="hidden">Devices, newest first</caption>
        <thead><tr><th scope="col">Device</th><th scope="col">App</th><th scope="col">Platform</th><th scope="col">Status</th>
        <th scope="col">Assurance</th><th scope="col">Registered</th><th scope="col">Last seen</th>{{#isQueue}}<th scope="col" class="buttons">Decide</th>{{/isQueue}}</tr></thead>
        <tbody>
        {{#devices}}
        <tr>
        <th scope="row">{{#selects}}<input type="checkbox" form="bulk" name="device" value="{{id}}" aria-label="Select {{id}}"> {{/selects}}<a href="{{path}}"><code>{{id}}</code></a>{{#flagged}} <span class="tag warn">risk</span>{{/flagged}}</th>
        <td data-label="App">{{app}}</td>
        <td data-label="Platform">{{platform}}</td>
        <td data-label="Status"><span class="status {{status}}">{{status}}</span></td>
        <td data-label="Assurance">{{assurance}}</td>
        <td data-label="Registered">{{#registered}}{{>time}}{{/registered}}</td>
        <td data-label="Last seen">{{#seen}}{{>time}}{{/seen}}{{^seen}}never{{/seen}}</td>
        {{#isQueue}}<td data-label="Decide" class="buttons">{{#buttons}}<a class="button" href="{{path}}">{{label}}<span class="hidden"> {{id}}</span></a> {{/buttons}}</td>{{/isQueue}}
        </tr>
        {{/devices}}
        </tbody>
        </table>
        {{/isEmpty}}
        {{#isEmpty}}{{^problem}}
        <div class="empty">
        {{#hasNoApps}}
        <p>There are no apps yet, so no device can register.</p>
        <p>Add one: <code>synheart-auth apps add --file app.json</code>. The command <code>synheart-auth apps example</code> prints a record to begin with.</p>
        {{/hasNoApps}}
        {{^hasNoApps}}{{#isQueue}}
        <p>No device waits for a decision.</p>
        {{/isQueue}}{{^isQueue}}{{#isFiltered}}
        <p>No device matches. {{#elsewhere}}<a href="{{.}}">Look in all apps</a>, {{/elsewhere}}<a href="/console/devices">Show all devices</a>, or look for the id in the <a href="/console/audit">audit log</a>.</p>
        {{/isFiltered}}{{^isFiltered}}
        <p>No device has registered yet. Point the app's client at the public origin, and start it once.</p>
        {{/isFiltered}}{{/isQueue}}{{/hasNoApps}}
        </div>
        {{/problem}}{{/isEmpty}}
        {{#older}}
        <p class="pages"><a class="button" rel="next" href="{{.}}">Older devices</a></p>
        {{/older}}
        {{>listCommands}}
        """#
}
