internal import AuthContract
internal import AuthServer
internal import StrictJSON

/// The archived part of the audit log, and how to check it together with the rest.
struct AuditArchivePage: ConsolePage {
    let path = "/audit/archive"
    let needs: AdminRoute? = .verifyAudit

    func show(_ visit: Visit) async throws -> Page {
        // The oldest event that the log still has.
        let first = try await visit.call(AdminCall(.followAudit, query: [("after", "0"), ("limit", "1")]))["events"]?
            .elements.first
        let sequence = first?["sequence"]?.integer ?? 1
        let commands = visit.commands(AdminCall(.verifyAudit))
        return Page(
            "Audit log: archive", "audit-archive",
            [
                "last": sequence > 1 ? .number(sequence - 1) : .none, "first": .number(sequence),
                "until": Moment.value(first?["at"]?.string, now: visit.now),
                "isEmpty": .flag(first == nil), "commands": commands.value,
            ])
    }
}

extension Templates {
    static let auditArchive = #"""
        <p class="crumbs"><a href="/console/audit">Audit</a></p>
        <h1>The archive of the audit log</h1>
        {{#last}}
        <p class="headline">Events 1 to {{.}} are in archive files.</p>
        <p>The log in the database begins with event {{first}}{{#until}} of {{>time}}{{/until}}. What is older is
        in the folder of <code>audit.archive</code>, in files such as <code>audit-000000000001-000000010000.jsonl</code>:
        a line for each event, and a signed head as the last line. The pages of the audit log, webhooks and searches have only what the database has.</p>
        {{/last}}
        {{^last}}
        <p class="headline">Nothing is archived.</p>
        <p>{{#isEmpty}}The log is empty.{{/isEmpty}}{{^isEmpty}}
        The log in the database begins with its first event{{#until}}, of {{>time}}{{/until}}.{{/isEmpty}}
        With <code>audit.keep_days</code> and <code>audit.archive</code> in the configuration, older events move to files.</p>
        {{/last}}
        <h2>Are the files, the seam and the log one chain?</h2>
        <p>The check reads every file and the whole log. It finds a file that is changed, missing or replaced, and a seam that
        this service did not sign. It needs the folder at the node that answers.</p>
        <form method="post" action="/console/audit/verification" class="buttons">
        {{>token}}
        <button class="primary">Check the log and its archive</button>
        <a class="button" href="/console/audit/verification">Check it against a head that you kept</a>
        </form>
        {{#commands}}
        <h2>The check in a terminal</h2>
        {{>commands}}
        {{/commands}}
        <p class="soft">Copy the files with the backups: without them, their events are lost, and the check says so.</p>
        """#
}
