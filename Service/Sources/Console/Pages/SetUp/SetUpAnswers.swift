internal import AuthContract
internal import AuthServer
internal import AuthService
internal import Bytes
internal import StrictJSON

/// A person's answers in the set-up so far. The form carries all of them: the service stores nothing.
struct SetUpAnswers: Sendable {
    private static let secret = "(secret)"

    private var values: [String: String] = [:]

    /// The answers of a form. A service account is written with JSON escapes, so that the form returns the same JSON.
    init(_ form: PageFields) {
        for field in SetUpStep.allCases.flatMap(\.fields) {
            let text = (form[field.name] ?? field.initial).trimmed
            values[field.name] = field.name == "service_account" ? VisibleText.ofJSON(text) : text
        }
    }

    subscript(_ name: String) -> String { values[name] ?? "" }

    /// The steps of the set-up, without those of platforms that are not chosen.
    var steps: [SetUpStep] {
        SetUpStep.allCases.filter { step in
            switch step {
            case .ios: isYes("with_ios")
            case .android: isYes("with_android")
            case .app, .policy, .review: true
            }
        }
    }

    private func isYes(_ name: String) -> Bool { self[name] == "yes" }

    /// A value that a page can show and get back unchanged. A value that is too long or has an invisible character is left out.
    func shown(_ field: SetUpField) -> String { isVisible(field) ? self[field.name] : "" }

    private func isVisible(_ field: SetUpField) -> Bool {
        let text = self[field.name]
        return text.utf8.count <= field.maximum && VisibleText.of(text, keepsLines: field.hasLines) == text
    }

    // MARK: The record

    /// Why a step cannot be completed; nil if it can be completed. The admin API's own parser judges the record, with the
    /// answers up to this step.
    func problem(in step: SetUpStep) -> Problem? {
        for field in step.fields where !isVisible(field) {
            return Problem(
                sentence: "\(field.label): it is too long, or has a character that cannot be seen. Type it anew.",
                names: [field.name])
        }
        // Check the service account first: the parser's error about its JSON would not name the service account.
        if step == .android, !self["service_account"].isEmpty, serviceAccount?.object == nil {
            return Problem(sentence: "Service account: it is not the JSON of the file.", names: ["service_account"])
        }
        do {
            if step == .app { _ = try AppID(self["app_id"]) }
            _ = try AppRecord(JSONFields(.object(record(upTo: step))))
            return nil
        } catch {
            let text = "\(error)"
            let fields = step.fields.filter { text.contains($0.member) }
            return Problem(
                sentence: fields.isEmpty ? "\(text)." : "\(fields[0].label): \(text).", names: fields.map(\.name))
        }
    }

    /// Why an answer is not valid.
    struct Problem: Sendable, Hashable {
        let sentence: String
        /// The fields to mark.
        let names: [String]
    }

    /// The app record that the answers of all steps make. Members without an answer have defaults.
    var record: JSONObject { record(upTo: .review) }

    /// The record with a placeholder for each secret, for pages and commands.
    var maskedRecord: JSONObject {
        var answers = self
        for field in SetUpStep.allCases.flatMap(\.fields) where field.isSecret && !self[field.name].isEmpty {
            answers.values[field.name] = Self.secret
        }
        return answers.record
    }

    /// Whether Android devices could not register because the service has no key or account to decode their tokens.
    var opensNoToken: Bool {
        isYes("with_android") && self["decryption_key"].isEmpty && self["service_account"].isEmpty
    }

    private func record(upTo step: SetUpStep) -> JSONObject {
        var record = JSONObject([
            ("app_id", .string(self["app_id"])), ("build_channel", .string(self["channel"])),
        ])
        if !self["app_name"].isEmpty { record["name"] = .string(self["app_name"]) }
        if isYes("development") { record["development_integrity_allowed"] = true }
        if step == .app {
            // The next steps ask about the chosen platforms, so a placeholder stands for them here. If none is chosen, the parser
            // refuses the record.
            if steps.contains(.ios) || steps.contains(.android) { record["ios"] = ["app_ids": ["TEAMID1234.app"]] }
            return record
        }
        if isYes("with_ios") { record["ios"] = ios }
        if step == .ios { return record }
        if isYes("with_android") { record["android"] = android }
        if step == .android { return record }
        record["mode"] = .string(self["mode"])
        record["registration"] = ["approval": .string(self["approval"])]
        if isYes("record_refusals") { record["evidence"] = ["record": true] }
        return record
    }

    private var ios: JSONValue {
        let environments = self["environments"].split(separator: ",").map { JSONValue.string(String($0)) }
        return [
            "app_ids": [.string(self["team_id"] + "." + self["bundle_id"])], "environments": .array(environments),
        ]
    }

    private var android: JSONValue {
        let digests = self["digests"].split(whereSeparator: \.isNewline).map { String($0).trimmed }
            .filter { !$0.isEmpty }
        let packages = [self["package"]].filter { !$0.isEmpty }
        var record = JSONObject([
            ("packages", .array(packages.map { .string($0) })),
            ("certificate_digests", .array(digests.map { .string(Self.base64url($0)) })),
        ])
        var play = JSONObject()
        let keys = ["decryption_key", "verification_key"].filter { !self[$0].isEmpty }
        if !keys.isEmpty { play["keys"] = [.object(JSONObject(keys.map { ($0, .string(self[$0])) }))] }
        let account = self["service_account"]
        if !account.isEmpty { play["service_account"] = serviceAccount ?? .string(account) }
        if !play.members.isEmpty { record["play_integrity"] = .object(play) }
        return .object(record)
    }

    private var serviceAccount: JSONValue? { try? JSONValue(parsing: self["service_account"]) }

    /// A certificate digest as base64url, as the record needs it. Vendors' consoles show a digest as hexadecimal with
    /// colons. Other text is returned unchanged, and the parser judges it.
    private static func base64url(_ digest: String) -> String {
        let digits = digest.filter { $0 != ":" && !$0.isWhitespace }
        guard digits.utf8.count == 64, let bytes = Hexadecimal.decode(digits) else { return digest }
        return Base64.url.encode(bytes)
    }
}
