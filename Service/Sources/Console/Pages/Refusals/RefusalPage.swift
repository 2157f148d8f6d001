internal import AttestationInspection
internal import AuthContract
internal import AuthServer
internal import StrictJSON
internal import Verification

/// One recorded refusal, replayed check by check. Opening the refusal appends an audit event, so a submitted form
/// opens it and a link does not.
struct RefusalPage: ConsolePage {
    let path = "/refusals/{app_id}/{recording_id}"
    let needs: AdminRoute? = .exportRecording
    /// How many of the app's newest recorded refusals are compared with this one, to count those of the same kind.
    private static let maximumOthers = 1000

    func show(_ visit: Visit) async throws -> Page {
        Page(
            "Open this recorded refusal?", "closed-refusal",
            [
                "id": .text(visit.parameters["recording_id"] ?? ""), "app": .text(visit.parameters["app_id"] ?? ""),
                "action": .text(visit.request.path),
            ])
    }

    func submit(_ visit: Visit) async throws -> PageResult { .page(try await opened(visit)) }

    private func opened(_ visit: Visit) async throws -> Page {
        let (app, id) = (visit.parameters["app_id"] ?? "", visit.parameters["recording_id"] ?? "")
        let call = AdminCall(.exportRecording, ["app_id": app, "recording_id": id])
        let document = try await visit.call(call)
        let file: RecordingFile
        let verdict: Verdict
        do {
            file = try RecordingFile(parsing: document.bytes)
            verdict = try file.replay()
        } catch {
            throw PageRefusal(
                status: 500, title: "The refusal cannot be replayed", message: "Another version recorded it: \(error)")
        }
        let device = file.about["device_id"]?.string
        let recorded = file.about["recorded_at"]?.string
        let isSame = file.verdict.agrees(with: verdict)
        return Page(
            "Refusal \(file.verdict.code ?? file.verdict.outcome.rawValue)", "recorded-refusal",
            [
                "id": .text(id), "app": .text(app), "code": .optional(file.verdict.code),
                "step": .optional(file.verdict.step), "format": .text(file.format),
                "occasion": PageValue(file.about["occasion"]),
                "recorded": Moment.value(recorded, now: visit.now),
                "device": device.map { ["id": .text($0), "path": .text(PagePath.of("devices", app, $0))] } ?? .none,
                "same": .flag(isSame), "again": .text(Self.words(verdict)),
                "checks": .list(verdict.checks.map(Self.value)), "chain": Self.chain(verdict.facts, at: recorded),
                "facts": .lines(ObjectTree.render(.object(verdict.facts))),
                "today": try await Self.today(file, app, visit), "others": try await Self.others(file, app, visit),
                "erase": .optional(
                    visit.may(.eraseRecording, of: app) ? PagePath.of("refusals", app, id, "erase") : nil),
                "commands": visit.commands(call).value,
            ])
    }

    /// A verdict in a few words, such as `refused with NONCE_MISMATCH by the check nonce`.
    static func words(_ verdict: Verdict) -> String {
        switch verdict.outcome {
        case .verified: "verified"
        case .couldNotCheck: "not decided: something that the checks need is missing"
        case .refused:
            "refused" + (verdict.code.map { " with \($0)" } ?? "") + (verdict.step.map { " by the check \($0)" } ?? "")
        }
    }

    private static func value(_ check: Verdict.Check) -> PageValue {
        let tone =
            switch check.outcome {
            case .passed: "good"
            case .unchecked: "warn"
            case .failed: "bad"
            }
        return [
            "name": .text(check.name), "outcome": .text(check.outcome.rawValue), "tone": .text(tone),
            "detail": .optional(check.detail), "failed": .flag(check.outcome == .failed),
        ]
    }

    /// The certificates in a proof's facts with their dates, the leaf first; no value if there are none.
    ///
    /// - Parameter recorded: when the refusal was recorded.
    static func chain(_ facts: JSONObject, at recorded: String?) -> PageValue {
        let certificates = facts["certificates"]?.array ?? leaf(facts).map { [$0] } ?? []
        guard !certificates.isEmpty else { return .none }
        let refused = time(recorded)
        return .list(
            certificates.map { certificate in
                let (starts, ends) = (time(certificate["not_before"]?.string), time(certificate["not_after"]?.string))
                var state: String?
                if let refused, let starts, refused < starts { state = "not valid yet when it was refused" }
                if let refused, let ends, refused > ends { state = "expired when it was refused" }
                return [
                    "subject": PageValue(certificate["subject"]), "issuer": PageValue(certificate["issuer"]),
                    "from": .optional(utc(starts)), "to": .optional(utc(ends)), "state": .optional(state),
                    "hash": PageValue(certificate["sha256"]),
                ]
            })
    }

    /// A time of a report, without its fraction of a second; nil: the text is absent, or not a time in UTC.
    private static func time(_ text: String?) -> UnixTime? {
        guard let text, text.hasSuffix("Z") else { return nil }
        return try? UnixTime(iso8601: text.prefix(19) + "Z")
    }

    private static func utc(_ time: UnixTime?) -> String? { time.map { Moment(time: $0, now: $0).utc } }

    /// The certificate of an App Attest key; nil if the report lacks its dates. The report has only the dates of this
    /// certificate, so the subject is a fixed text.
    private static func leaf(_ facts: JSONObject) -> JSONValue? {
        guard let start = facts["leaf_not_before"], let end = facts["leaf_not_after"] else { return nil }
        return ["subject": "Certificate of the key", "not_before": start, "not_after": end]
    }

    /// The verdict that the recorded request gets under the app's current record, in words.
    private static func today(_ file: RecordingFile, _ app: String, _ visit: Visit) async throws -> PageValue {
        let record = try await visit.call(AdminCall(.showApp, ["app_id": app]))
        let answer = try await visit.call(
            AdminCall(.whatIf, ["app_id": app], body: JSONObject([("record", record), ("limit", 0)])))
        guard let policies = answer["policies"]?.object, let members = record.object,
            let changes = RecordingFile.Changes(of: file.format, by: members, policies: policies)
        else { return .text("refused, because the record no longer has the platform") }
        guard let verdict = try? file.replay(changes) else { return .text("not decided") }
        return .text(words(verdict))
    }

    /// The number of other recorded refusals of the app with the same format, check and code, among the newest ones.
    private static func others(_ file: RecordingFile, _ app: String, _ visit: Visit) async throws -> PageValue {
        let list = AdminCall(.listRecordings, query: [("app_id", app), ("limit", String(maximumOthers))])
        let all = try await visit.call(list)["recordings"]?.elements ?? []
        let same = all.filter {
            $0["format"]?.string == file.format && $0["code"]?.string == file.verdict.code
                && $0["step"]?.string == file.verdict.step
        }
        return .number(Int64(max(0, same.count - 1)))
    }
}
