extension Templates {
    static let refusals = #"""
        <h1>Recorded refusals</h1>
        <form method="get" action="/console/refusals" class="filters" role="search">
        <div class="field"><label for="app">App</label>
        <select id="app" name="app">{{#apps}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/apps}}</select></div>
        <div class="field wide"><label for="find">Why was it refused? Device id, hash of the log, request id, or time (UTC)</label>
        <input id="find" name="find" value="{{find}}" maxlength="128" spellcheck="false" autocomplete="off" placeholder="7d0f6c1a-… or 2026-11-26 21:14"></div>
        <button>Show</button>
        </form>
        {{#problem}}
        <p class="problem" role="alert">{{.}}</p>
        {{/problem}}
        {{#search}}
        {{#device}}
        <p>Device <a href="{{path}}"><code>{{id}}</code></a> of {{app}} is <span class="status {{status}}">{{status}}</span>. Its page has what happened to it.</p>
        {{/device}}
        {{#sentences}}
        <p>{{.}}</p>
        {{/sentences}}
        <h2>In the log</h2>
        <p>The log has every refusal. Without systemd, put the service's standard error in place of <code>journalctl</code>.</p>
        <div class="commands">
        {{#log}}
        <p>{{sentence}}</p>
        <pre tabindex="0"><code>{{command}}</code></pre>
        {{/log}}
        </div>
        <h2>Among the recorded refusals</h2>
        {{#isEmpty}}
        <p>None. <a href="/console/refusals">Show all recorded refusals</a>.</p>
        {{/isEmpty}}
        {{/search}}
        <div data-live="refusals">
        {{#isEmpty}}{{^problem}}{{^search}}
        <div class="empty">
        <p>No refused proof is recorded. An app's refusals are recorded if its record has <code>"evidence": {"record": true}</code>.</p>
        <p>The <a href="/console/history">history</a> counts all refusals by code.</p>
        </div>
        {{/search}}{{/problem}}{{/isEmpty}}
        {{^isEmpty}}
        <table class="cards">
        <caption class="hidden">Recorded refusals, newest first</caption>
        <thead><tr><th scope="col">Code</th><th scope="col">Check</th><th scope="col">Proof</th><th scope="col">App</th>
        <th scope="col">Device</th><th scope="col">Recorded</th><th scope="col">Erased</th></tr></thead>
        <tbody>
        {{#refusals}}
        <tr>
        <th scope="row"><form method="post" action="{{path}}">{{>token}}<button><span>{{#code}}{{.}}<wbr>{{/code}}</span></button></form></th>
        <td data-label="Check"><code>{{step}}</code></td>
        <td data-label="Proof">{{format}}</td>
        <td data-label="App">{{app}}</td>
        <td data-label="Device">{{#device}}<a href="{{path}}"><code>{{id}}</code></a>{{/device}}{{^device}}not registered{{/device}}</td>
        <td data-label="Recorded">{{#recorded}}{{>time}}{{/recorded}}</td>
        <td data-label="Erased">{{#expires}}{{>time}}{{/expires}}</td>
        </tr>
        {{/refusals}}
        </tbody>
        </table>
        <p class="soft">Opening a refusal decrypts it and is an event of the audit log, because it identifies a device.</p>
        {{/isEmpty}}
        {{#older}}
        <p class="pages"><a class="button" rel="next" href="{{.}}">Older refusals</a></p>
        {{/older}}
        </div>
        {{>listCommands}}
        """#

    static let closedRefusal = #"""
        <p class="crumbs"><a href="/console/refusals">Refusals</a></p>
        <h1>{{page.title}}</h1>
        <ul class="consequences">
        <li>Refusal {{id}} of {{app}}.</li>
        <li>Opening it decrypts it and is an event of the audit log, because it identifies a device.</li>
        </ul>
        <form method="post" action="{{action}}" class="buttons">
        {{>token}}
        <button class="primary">Open the refusal</button>
        <a class="button" href="/console/refusals">Cancel</a>
        </form>
        """#

    static let recordedRefusal = #"""
        <p class="crumbs"><a href="/console/refusals">Refusals</a></p>
        <h1>{{page.title}}</h1>
        <p class="headline bad">Refused{{#step}} by the check <code>{{.}}</code>{{/step}}.
        {{#same}}The same checks refuse it again now.{{/same}}{{^same}}The same checks now say: {{again}}.{{/same}}</p>
        <dl class="facts">
        <div><dt>App</dt><dd>{{app}}</dd></div>
        <div><dt>Device</dt><dd>{{#device}}<a href="{{path}}"><code>{{id}}</code></a>{{/device}}{{^device}}not registered at that time{{/device}}</dd></div>
        <div><dt>Recorded</dt><dd>{{#recorded}}{{>time}}{{/recorded}}</dd></div>
        <div><dt>At a</dt><dd>{{occasion}}</dd></div>
        <div><dt>Proof</dt><dd>{{format}}</dd></div>
        <div><dt>By the app's record of today</dt><dd>{{today}}</dd></div>
        <div><dt>Others refused in the same way</dt><dd>{{others}} of those that are recorded</dd></div>
        </dl>
        {{#erase}}
        <div class="buttons"><a class="button danger" href="{{.}}">Erase</a></div>
        {{/erase}}
        <div class="columns">
        <section aria-labelledby="checks">
        <h2 id="checks">Check by check</h2>
        <ul class="checks">
        {{#checks}}
        <li class="{{tone}}"><span class="name">{{#failed}}<strong>{{name}}</strong>{{/failed}}{{^failed}}{{name}}{{/failed}}</span> <span class="state">{{outcome}}</span>{{#detail}}<span class="soft">{{.}}</span>{{/detail}}</li>
        {{/checks}}
        </ul>
        {{^checks}}
        <p>The proof could not be read, so no check was made.</p>
        {{/checks}}
        </section>
        <section aria-labelledby="chain">
        <h2 id="chain">Certificates</h2>
        <ol class="events">
        {{#chain}}
        <li class="event{{#state}} bad{{/state}}">
        <p><strong>{{subject}}</strong></p>
        {{#issuer}}<p class="soft">issued by {{.}}</p>{{/issuer}}
        <p>{{#from}}{{.}}{{/from}} to {{#to}}{{.}}{{/to}}{{#state}} <span class="tag">{{.}}</span>{{/state}}</p>
        {{#hash}}<p class="soft">SHA-256 <code>{{.}}</code></p>{{/hash}}
        </li>
        {{/chain}}
        </ol>
        {{^chain}}
        <p>The report of this kind of proof names no certificates.</p>
        {{/chain}}
        </section>
        </div>
        <details><summary>Everything that the proof says</summary>
        <pre tabindex="0"><code>{{facts}}</code></pre>
        </details>
        {{#commands}}
        <details><summary>Replay it in a terminal</summary>
        {{>commands}}
        <p>Then <code>synheart-auth attestation replay refusal.json</code>, also with another policy or time.</p>
        </details>
        {{/commands}}
        """#
}
