extension Templates {
    static let access = #"""
        <h1>Access</h1>
        {{#credentials}}
        <h2>Credentials</h2>
        {{#create}}
        <div class="buttons"><a class="button" href="{{.}}">Create a credential</a></div>
        {{/create}}
        <table class="cards">
        <caption class="hidden">Credentials</caption>
        <thead><tr><th scope="col">Name</th><th scope="col">Role</th><th scope="col">Apps</th><th scope="col">State</th><th scope="col">Created</th><th scope="col">Last use here</th><th scope="col">Expires</th><th scope="col">Revoke</th></tr></thead>
        <tbody>
        {{#rows}}
        <tr>
        <th scope="row">{{name}} <code>{{id}}</code>{{#isOwn}} <span class="tag">yours</span>{{/isOwn}}</th>
        <td data-label="Role">{{role}}</td>
        <td data-label="Apps">{{apps}}</td>
        <td data-label="State">{{state}}</td>
        <td data-label="Created">{{#created}}{{>time}}{{/created}}</td>
        <td data-label="Last use here">{{#used}}{{>time}}{{/used}}{{^used}}not yet{{/used}}</td>
        <td data-label="Expires">{{#expires}}{{>time}}{{/expires}}{{#soon}} <span class="tag warn">soon</span>{{/soon}}</td>
        <td data-label="Revoke" class="buttons">{{#revoke}}<a class="button danger" href="{{.}}">Revoke<span class="hidden"> {{id}}</span></a>{{/revoke}}</td>
        </tr>
        {{/rows}}
        </tbody>
        </table>
        <p class="soft">The last use is the one that this node saw since it started. Other nodes may have seen a later one:
        <code>synheart_credential_last_use_timestamp_seconds</code> has it for each node.</p>
        <p class="soft">A credential cannot be prolonged. Create another one, replace it where it is used, then revoke the old one.</p>
        {{/credentials}}
        <h2>Keys that sign device tokens</h2>
        {{#rotate}}
        <div class="buttons"><a class="button" href="{{.}}">Rotate</a></div>
        {{/rotate}}
        <table class="cards">
        <caption class="hidden">Signing keys</caption>
        <thead><tr><th scope="col">Key</th><th scope="col">Use</th><th scope="col">Created</th><th scope="col">Revoke</th></tr></thead>
        <tbody>
        {{#keys}}
        <tr>
        <th scope="row"><code>{{kid}}</code></th>
        <td data-label="Use">{{use}}</td>
        <td data-label="Created">{{#created}}{{>time}}{{/created}}</td>
        <td data-label="Revoke" class="buttons">{{#revoke}}<a class="button danger" href="{{.}}">Revoke<span class="hidden"> {{kid}}</span></a>{{/revoke}}</td>
        </tr>
        {{/keys}}
        </tbody>
        </table>
        {{#webhooks}}
        <h2>Webhooks</h2>
        {{#add}}
        <div class="buttons"><a class="button" href="{{.}}">Add a webhook</a></div>
        {{/add}}
        {{#isEmpty}}
        <div class="empty"><p>No program receives events.</p></div>
        {{/isEmpty}}
        {{^isEmpty}}
        <table class="cards">
        <caption class="hidden">Webhooks</caption>
        <thead><tr><th scope="col">Receiver</th><th scope="col">Apps</th><th scope="col">Events</th><th scope="col">State</th><th scope="col" class="number">Delivered up to</th><th scope="col" class="buttons">Change</th></tr></thead>
        <tbody>
        {{#rows}}
        <tr>
        <th scope="row"><a href="{{path}}">{{url}}</a> <code>{{id}}</code></th>
        <td data-label="Apps">{{apps}}</td>
        <td data-label="Events">{{events}}</td>
        <td data-label="State">{{>webhookState}}</td>
        <td data-label="Delivered up to" class="number">{{position}}</td>
        <td data-label="Change" class="buttons">{{#buttons}}<a class="button{{#danger}} danger{{/danger}}" href="{{path}}">{{label}}<span class="hidden"> {{id}}</span></a> {{/buttons}}</td>
        </tr>
        {{/rows}}
        </tbody>
        </table>
        {{/isEmpty}}
        {{/webhooks}}
        {{#commands}}
        <details><summary>The signing keys in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#

    static let createdCredential = #"""
        <h1>{{page.title}}</h1>
        <p class="headline warn">This is the only time that its text is shown. Copy it to where it is used now.</p>
        <p>Credential <code>{{id}}</code> for {{name}}, role {{role}}{{#expires}}, until {{>time}}{{/expires}}.</p>
        <div class="commands"><pre class="secret" tabindex="0"><code>{{text}}</code></pre></div>
        <p>This page cannot be shown again: a reload creates no other credential. If the text is lost, revoke the credential and create another.</p>
        <p><a class="button" href="/console/access">I have copied it</a></p>
        """#
}
