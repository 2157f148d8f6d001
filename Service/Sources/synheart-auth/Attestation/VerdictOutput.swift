import AttestationInspection
import AuthContract
import StrictJSON
import Verification

extension Verdict {
    /// The key in an App Attest attestation; nil: there is none. A refused attestation may have a key too, unverified: use the key
    /// only if the outcome is `verified`.
    var attestedKey: DevicePublicKey? {
        facts["public_key_x963"]?.string.flatMap { try? DevicePublicKey(base64: $0) }
    }
}

extension OutputOptions {
    /// Prints the verdict on one object, and the values of a verified object that a server stores: the key and the counter.
    ///
    /// - Parameter key: the attested key, or the key that verified the object; nil: not verified, or no key.
    func show(_ verdict: Verdict, of format: String, provenBy key: DevicePublicKey?) throws(CommandFailure) {
        guard !json else {
            let forms = key.map { JSONObject($0.forms + [("pem", .string($0.pem))]) }
            return try show(verdict, of: format, further: [("public_key", forms.map { .object($0) } ?? .null)])
        }
        try show(verdict, of: format)
        guard let key else { return }
        let counter = verdict.facts["counter"].map { [("counter", $0)] } ?? []
        try StandardOutput.print("")
        try show(JSONObject(counter + key.forms))
        try StandardOutput.write(key.pem)
    }

    /// Prints a verdict: its checks as a table and the outcome, or everything as JSON.
    func show(
        _ verdict: Verdict, of format: String, further: [(String, JSONValue)] = []
    ) throws(CommandFailure) {
        let checks = verdict.checks.map(\.json)
        let summary = JSONObject(
            [
                ("format", .string(format)), ("outcome", .string(verdict.outcome.rawValue)),
                ("code", verdict.code.map { .string($0) } ?? .null),
                ("step", verdict.step.map { .string($0) } ?? .null),
            ] + further)
        guard json else {
            try list(checks, columns: ["check", "outcome", "detail"], empty: "nothing was checked")
            try StandardOutput.print("")
            return try show(summary)
        }
        var whole = summary
        whole["unchecked"] = .array(verdict.unchecked.map { .string($0) })
        whole["checks"] = .array(checks.map { .object($0) })
        whole["facts"] = .object(verdict.facts)
        try show(whole)
    }
}
