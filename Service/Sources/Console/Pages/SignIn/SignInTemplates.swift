extension Templates {
    static let signIn = #"""
        <div class="narrow">
        <h1>Sign in</h1>
        <p>Use a credential of this service with role viewer, operator or admin. What you may see and do here is what the
        credential may do in the admin API.</p>
        {{#problem}}
        <p class="problem" role="alert" id="problem">{{.}}</p>
        {{/problem}}
        {{#hasLostForm}}
        <p class="problem" role="alert">Your session had ended, so nothing was changed. Sign in, and fill in the form again.</p>
        {{/hasLostForm}}
        <form method="post" action="/console/sign-in" autocomplete="off">
        <label for="credential">Credential</label>
        <input id="credential" name="credential" type="password" required autofocus autocomplete="off" spellcheck="false"
        placeholder="sya_…"{{#problem}} aria-describedby="problem" aria-invalid="true"{{/problem}}>
        <input type="hidden" name="next" value="{{next}}">
        <button class="primary">Sign in</button>
        </form>
        {{#hasNext}}
        <p>Did you follow a link from elsewhere while you were signed in? <a href="{{next}}">Continue to the page</a>.</p>
        {{/hasNext}}
        <details>
        <summary>I have no credential</summary>
        <p>An administrator makes one for you, for the apps that you answer for:</p>
        <pre tabindex="0"><code>synheart-auth credentials create --name 'your name' --role viewer</code></pre>
        </details>
        </div>
        """#

    static let account = #"""
        <h1>Your session</h1>
        <dl class="facts">
        <div><dt>Credential</dt><dd>{{name}} <code>{{id}}</code></dd></div>
        <div><dt>Role</dt><dd>{{role}}</dd></div>
        <div><dt>Apps</dt><dd>{{apps}}</dd></div>
        <div><dt>The credential expires</dt><dd>{{#expires}}{{>time}}{{/expires}}</dd></div>
        <div><dt>Signed in</dt><dd>{{#started}}{{>time}}{{/started}}</dd></div>
        <div><dt>The session ends</dt><dd>{{#ends}}{{>time}}{{/ends}}, or after 30 minutes without a request</dd></div>
        </dl>
        <p>A session belongs to the node that you signed in at. A restart of the node ends it.</p>
        <form method="post" action="{{signOut}}" class="buttons">
        {{>token}}
        <button class="primary">Sign out</button>
        <button name="everywhere" value="yes">Sign out of all sessions of this credential at this node</button>
        </form>
        <p>If the credential may be known to others, revoke it: that ends its sessions at this node at once, and at other nodes within 5 seconds.</p>
        """#
}
