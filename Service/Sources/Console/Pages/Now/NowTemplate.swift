extension Templates {
    static let now = #"""
        <div data-live="now">
        <h1 class="headline {{tone}}">{{headline}}</h1>
        {{#pending}}
        <p><a href="{{path}}">Devices that wait for a decision: {{count}}</a>{{#since}}. The first has waited since {{>time}}{{/since}}</p>
        {{/pending}}
        <ul class="concerns">
        {{#concerns}}
        <li class="{{tone}}"><span class="tag">{{urgency}}</span> {{#path}}<a href="{{.}}">{{sentence}}</a>{{/path}}{{^path}}{{sentence}}{{/path}}</li>
        {{/concerns}}
        </ul>
        <section aria-labelledby="requests">
        <h2 id="requests">Requests in the last hour</h2>
        {{#requestsProblem}}
        <p class="problem">{{.}}</p>
        {{/requestsProblem}}
        {{#chart}}
        {{>chart}}
        {{/chart}}
        {{^chart}}{{^requestsProblem}}
        <div class="empty"><p>No request was judged in the last hour.</p></div>
        {{/requestsProblem}}{{/chart}}
        <table class="cards">
        <caption class="hidden">Requests in the last hour, by app</caption>
        <thead><tr><th scope="col">App</th><th scope="col" class="number">Verified</th><th scope="col" class="number">Refused</th>
        <th scope="col" class="number">Observed</th><th scope="col" class="number">Not judged</th><th scope="col">Most frequent codes</th></tr></thead>
        <tbody>
        {{#apps}}
        <tr><th scope="row">{{app}}</th><td data-label="Verified" class="number">{{accepted}}</td>
        <td data-label="Refused" class="number">{{refused}}</td><td data-label="Observed" class="number">{{observed}}</td>
        <td data-label="Not judged" class="number">{{failed}}</td>
        <td data-label="Codes">{{#codes}}<code>{{code}}</code> {{count}} {{/codes}}{{^codes}}none{{/codes}}</td></tr>
        {{/apps}}
        </tbody>
        </table>
        </section>
        <div class="columns">
        <section aria-labelledby="checks">
        <h2 id="checks">Readiness</h2>
        <ul class="checks">
        {{#checks}}
        <li class="{{tone}}"><span class="name">{{name}}</span> <span class="state">{{state}}</span>{{#words}}<span class="soft">{{.}}</span>{{/words}}</li>
        {{/checks}}
        </ul>
        </section>
        <section aria-labelledby="ends">
        <h2 id="ends">What ends next</h2>
        {{#endingsProblem}}
        <p class="problem">{{.}}</p>
        {{/endingsProblem}}
        <ul class="plain">
        {{#endings}}
        <li>{{name}}<br>{{#at}}{{>time}}{{/at}}</li>
        {{/endings}}
        </ul>
        {{^endings}}{{^endingsProblem}}
        <p class="soft">Nothing that you may see here has an end.</p>
        {{/endingsProblem}}{{/endings}}
        </section>
        </div>
        <section aria-labelledby="devices">
        <h2 id="devices">Devices</h2>
        {{#devicesProblem}}
        <p class="problem">{{.}}</p>
        {{/devicesProblem}}
        <table class="cards">
        <caption class="hidden">Devices by app and status</caption>
        <thead><tr><th scope="col">App</th>{{#statuses}}<th scope="col" class="number">{{.}}</th>{{/statuses}}</tr></thead>
        <tbody>
        {{#devices}}
        <tr><th scope="row"><a href="{{path}}">{{app}}</a></th>{{#counts}}<td data-label="{{status}}" class="number"><a href="{{path}}" aria-label="{{count}} {{status}} devices of {{app}}">{{count}}</a></td>{{/counts}}</tr>
        {{/devices}}
        </tbody>
        </table>
        {{^devices}}{{^devicesProblem}}
        <div class="empty"><p>There are no apps yet. Add one: <code>synheart-auth apps add --file app.json</code></p></div>
        {{/devicesProblem}}{{/devices}}
        </section>
        </div>
        """#
}
