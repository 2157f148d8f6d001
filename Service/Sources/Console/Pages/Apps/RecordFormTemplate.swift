extension Templates {
    /// The form of a draft: its fields, or its JSON.
    static let recordForm = #"""
        {{#isRefused}}
        <div class="problem" role="alert" id="problem">
        {{>recordProblems}}
        </div>
        {{/isRefused}}
        <p>Secrets are masked. A mask that you leave as it is keeps its secret. The next page shows what the change would do.</p>
        {{#fields}}
        <form method="post" action="{{action}}" class="record-form" autocomplete="off">
        {{>token}}
        <input type="hidden" name="tag" value="{{tag}}">
        <input type="hidden" name="base" value="{{base}}">
        {{>recordFields}}
        <div id="checked"></div>
        <div class="buttons">
        <button class="primary">What would it do?</button>
        <button name="edit" value="json" formnovalidate>Edit as JSON</button>
        <a class="button" href="{{path}}">Cancel</a>
        </div>
        </form>
        {{/fields}}
        {{^fields}}
        <form method="post" action="{{action}}" autocomplete="off">
        {{>token}}
        <input type="hidden" name="tag" value="{{tag}}">
        <input type="hidden" name="base" value="{{base}}">
        <div class="field">
        <label for="record">Record, JSON</label>
        <textarea id="record" name="record" class="code" spellcheck="false" rows="30" required{{#isRefused}} aria-describedby="problem" aria-invalid="true"{{/isRefused}}>{{record}}</textarea>
        </div>
        <div class="buttons">
        <button class="primary">What would it do?</button>
        <button name="edit" value="form">Edit as a form</button>
        <a class="button" href="{{path}}">Cancel</a>
        </div>
        </form>
        {{/fields}}
        """#
}
