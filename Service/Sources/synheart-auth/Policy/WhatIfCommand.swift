import ArgumentParser
import AttestationInspection
import AuthServer
import StrictJSON
import Verification

/// Counts the devices and the recorded refusals about which another app record would decide differently.
struct WhatIfCommand: AdministrationCommand {
    static let configuration = CommandConfiguration(
        commandName: "what-if", abstract: "Count the devices and refusals that another record would decide otherwise.",
        discussion: """
            Change a copy of the app's record, and see which devices it would refuse or leave pending, before `apps change`. Nothing is changed.

              synheart-auth apps show com.example.app --json > app.json
              synheart-auth policy what-if --app app.json
              synheart-auth policy what-if --app app.json --recordings 1000 --json

            Devices are judged by their rows: their next request to another service, and a registration with their proof. A row keeps \
            what a device has proven, not its attestation, so versions, certificate digests and patch levels show only in recorded \
            refusals. These are made again under the record's policies; each export of one is an audit event and needs role operator.

            The counts of the last 90 days tell which share of the requests and registrations that passed would not, by platform, \
            scheme and app version. A count has no device and no proof: it tells what `enabled`, `mode`, `signature.minimum_scheme`, \
            a platform and `registration.approval` decide, and nothing of other policies.

            Exit code 0: no device would be decided about otherwise; 1: some would.
            """)
    @Option(
        name: .customLong("app"),
        help: ArgumentHelp("The app record, JSON, with its app_id; - is standard input.", valueName: "RECORD"))
    var record: String
    // The second name is the former one. It still works in all versions 1.x.
    @Option(
        name: [.customLong("recordings"), .customLong("evidence")],
        help: "The most recorded refusals to make again, newest first; 0: none.") var recordings = 100
    @OptionGroup var options: AdministrationOptions

    func validate() throws {
        guard 0...10_000 ~= recordings else { throw ValidationError("--recordings is 0 to 10000") }
    }

    func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
        guard let record = try InputFile.json(record).object, let app = record["app_id"]?.string else {
            throw CommandFailure(.impossible, "\(self.record) is no app record: it has no app_id")
        }
        var report = WhatIfReport(app: app)
        try await judgeDevices(record, app, administration, &report)
        if recordings > 0 { try await replay(record, app, administration, &report) }
        try report.show(output)
        if report.newly > 0 { throw ExitCode(CommandFailure.Kind.refused.rawValue) }
    }

    private func judgeDevices(
        _ record: JSONObject, _ app: String, _ administration: any Administration, _ report: inout WhatIfReport
    ) async throws {
        var cursor: JSONValue = .null
        repeat {
            let page = try await administration.ask(
                .whatIf, ["app_id": app], body: JSONObject([("record", .object(record)), ("cursor", cursor)]))
            report.add(page)
            cursor = page["next_cursor"] ?? .null
        } while !cursor.isNull
    }

    private func replay(
        _ record: JSONObject, _ app: String, _ administration: any Administration, _ report: inout WhatIfReport
    ) async throws {
        let refusals = try await administration.list(
            .listRecordings, "recordings", limit: recordings, cursor: ("cursor", "next_cursor"),
            query: [("app_id", app)])
        for refusal in refusals {
            guard let id = refusal["id"]?.string else { continue }
            let document: JSONObject
            do {
                document = try await administration.ask(.exportRecording, ["app_id": app, "recording_id": id])
            } catch let failure as CommandFailure where failure.kind == .refused {
                // The recording expired after it was listed.
                continue
            }
            let file = try RecordingFile(parsing: JSONValue.object(document).bytes)
            guard let changes = RecordingFile.Changes(of: file.format, by: record, policies: report.policies) else {
                report.add(id, from: file.verdict.code, to: "refused", "no such platform")
                continue
            }
            let verdict = try file.replay(changes)
            report.add(id, from: file.verdict.code, to: verdict.outcome.rawValue, verdict.code)
        }
    }
}
