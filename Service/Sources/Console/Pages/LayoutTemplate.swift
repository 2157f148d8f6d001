extension Templates {
    static let layout = #"""
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>{{page.title}} · Synheart Auth</title>
        <link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%232563a8' d='M8 1l6 2v5c0 4-3 6-6 7-3-1-6-3-6-7V3z'/%3E%3C/svg%3E">
        <link rel="stylesheet" href="{{page.stylesheet}}">
        <script src="{{page.script}}" defer></script>
        </head>
        <body{{#page.refresh}} data-refresh="{{.}}"{{/page.refresh}}>
        <a class="skip" href="#content">Skip to the content</a>
        <header class="top">
        <a class="brand" href="{{page.home}}">Synheart Auth</a>
        {{#page.person}}
        <nav aria-label="Pages">
        <ul>
        {{#page.links}}
        <li><a href="{{path}}"{{#current}} aria-current="page"{{/current}}>{{title}}</a></li>
        {{/page.links}}
        </ul>
        </nav>
        <a class="person" href="{{page.account}}"><span>{{name}}</span> <span class="role">{{role}}</span></a>
        {{/page.person}}
        </header>
        <main id="content" tabindex="-1">
        {{#page.notice}}
        <div class="notice" role="status">
        <p>{{sentence}}</p>
        {{#commands}}
        <details>
        <summary>The same change in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        </div>
        {{/page.notice}}
        {{$content}}{{/content}}
        </main>
        <footer class="bottom">
        {{#page.now}}
        <p>Read <time datetime="{{iso}}">{{utc}}</time><span data-live-state></span> · Version {{page.version}}</p>
        {{/page.now}}
        </footer>
        </body>
        </html>
        """#

    /// Shows a time, from the value of a `Moment`.
    static let time = #"<time datetime="{{iso}}">{{utc}} <small>{{words}}</small></time>"#

    /// The field that binds a form to the session.
    static let token = #"<input type="hidden" name="token" value="{{page.token}}">"#

    /// Shows a call as commands for a terminal, from the value of `CallCommands`.
    static let commands = #"""
        <div class="commands">
        {{#cli}}
        <p>Command line</p>
        <pre tabindex="0"><code>{{.}}</code></pre>
        {{/cli}}
        <p>curl, with the credential in the file <code>credential</code></p>
        <pre tabindex="0"><code>{{curl}}</code></pre>
        </div>
        """#

    /// The commands that return the same list as the page.
    static let listCommands = #"""
        {{#commands}}
        <details><summary>This list in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#

    static let refusal = #"""
        <h1>{{page.title}}</h1>
        <p>{{message}}</p>
        <p><a href="{{page.home}}">Go to the first page</a></p>
        """#
}
