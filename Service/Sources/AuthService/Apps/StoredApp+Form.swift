internal import AuthContract
internal import Bytes
internal import StrictJSON

extension StoredApp {
    /// The parts of a stored record's text.
    struct Form {
        /// The record for a reader of the database, without its secrets.
        let masked: JSONValue
        /// The whole record, sealed with the service key.
        var sealed: [UInt8]
        /// The latest date of a request that may have been accepted under an earlier, wider future window; nil: the window
        /// was not narrowed recently.
        let widerUntil: UnixTime?

        private static let limits = JSONValue.Limits(bytes: 1 << 20, depth: 16)

        init(masked: JSONValue, sealed: [UInt8], widerUntil: UnixTime?) {
            (self.masked, self.sealed, self.widerUntil) = (masked, sealed, widerUntil)
        }

        /// Parses a stored record's text. Nil if the text is damaged.
        init?(_ text: [UInt8]) {
            guard let object = (try? JSONValue(parsing: text, limits: Self.limits))?.object,
                let masked = object["record"],
                let sealed = object["sealed"]?.string.flatMap({ Base64.standard.decode($0) })
            else { return nil }
            self.init(masked: masked, sealed: sealed, widerUntil: object["wider_until"]?.integer.map { UnixTime($0) })
        }

        var json: JSONValue {
            var object = JSONObject([("record", masked), ("sealed", .string(Base64.standard.encode(sealed)))])
            object["wider_until"] = widerUntil.map { .integer($0.seconds) }
            return .object(object)
        }
    }

    /// The parts of the text; nil if it is damaged.
    var form: Form? { Form(Array(sealedJSON.utf8)) }
}

extension SignaturePolicy {
    /// The latest date of a request that may have been accepted under a wider future window than this policy's; nil: the
    /// window was not narrowed recently.
    ///
    /// After a loss of history, the replay claims of such requests are missing too (*Loss of history* of the contract).
    ///
    /// - Parameters:
    ///   - before: the policy that this one replaces.
    ///   - stored: the stored record that has the policy `before`. An earlier change may have narrowed its window too.
    ///   - now: the time of the change.
    func widerUntil(after before: SignaturePolicy, _ stored: StoredApp, at now: UnixTime) -> UnixTime? {
        let narrowed =
            futureWindowSeconds < before.futureWindowSeconds
            // For some seconds, another node still judges by the previous record.
            ? now + before.futureWindowSeconds + ClaimHistory.clockTolerance : nil
        // Keep a date as long as a copy of a request with this date may still be fresh.
        return [narrowed, stored.form?.widerUntil].compactMap(\.self).filter { $0 + ReplayClaim.life >= now }.max()
    }
}

extension ProvisionedApp {
    /// The future window for the replay claim of a request with this date, in seconds.
    ///
    /// A request dated up to `widerUntil` may have been accepted under a wider window, so its claim gets the maximum.
    func claimWindow(at timestamp: UnixTime) -> Int64 {
        if let widerUntil, timestamp <= widerUntil { return SignaturePolicy.maximumFutureWindow }
        return record.signature.futureWindowSeconds
    }
}
