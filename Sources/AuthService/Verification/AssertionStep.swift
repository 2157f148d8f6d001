internal import AuthContract

extension RequestVerifier {
    /// An App Attest assertion over the same bytes that the request signs: demanded where the app's policy names the path,
    /// and verified wherever one is sent.
    @inline(__always)
    func checkAssertion(
        _ request: IncomingRequest, _ verified: VerifiedRequest, path: RequestPath
    ) async throws(Refusal) {
        let text = try wellFormed { try request.headers.atMostOne(HeaderName.assertion) }
        guard let text else {
            let prefixes = verified.app.record.ios?.assertionsRequiredOn ?? []
            guard verified.device.platform == .ios, path.mayBeRead(asBelow: prefixes) else { return }
            throw Refusal(.assertionRequired, "no assertion on \(path)")
        }
        guard let object = Base64.standard.decode(text) else {
            throw Refusal(malformed: ContractError("\(HeaderName.assertion) must be padded standard base64"))
        }
        // The remembered row may be of before another node replaced the attested key.
        guard let device = try await devices.read(verified.deviceID, of: verified.appID),
            let evidence = device.appAttest
        else { throw Refusal(.invalidAssertion, "the device has no attested key") }
        let counter: UInt32
        do {
            counter = try verified.app.verifyAssertion(object, by: evidence, over: verified.message)
        } catch {
            await recorder.note(error.proof, .request, of: verified.app, device: device.deviceID)
            throw error
        }
        let advanced = try await asking { () async throws(StoreError) in
            try await deviceStore.advanceCounter(
                device.deviceID, of: device.appID, attestedKey: evidence.keyID, to: counter)
        }
        guard advanced else { throw Refusal(.invalidAssertion, "the counter was used by another request") }
        devices.forget(device.deviceID)
    }
}

extension RequestPath {
    /// Whether some server could take this path for one below a prefix. The signature leaves escapes and repeated slashes as
    /// they are, the service behind may not: `/%70ay` must not go round what is demanded on `/pay`.
    func mayBeRead(asBelow prefixes: [String]) -> Bool {
        guard !prefixes.isEmpty else { return false }
        let plain = plain
        return prefixes.contains { prefix in
            guard !isBelow(prefix) else { return true }
            let rest = plain.dropFirst(prefix.utf8.count)
            return plain.starts(with: prefix.utf8)
                && (prefix.hasSuffix("/") || rest.isEmpty || rest.first == UInt8(ascii: "/"))
        }
    }

    /// Unescaped once, `\` read as `/`, slashes in a row read as one.
    private var plain: [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while var byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let unescaped = Self.byte(ofDigits: rest.prefix(2)) {
                byte = unescaped
                rest.removeFirst(2)
            }
            if byte == UInt8(ascii: "\\") { byte = UInt8(ascii: "/") }
            if byte == UInt8(ascii: "/"), bytes.last == byte { continue }
            bytes.append(byte)
        }
        return bytes
    }

    private static func byte(ofDigits digits: ArraySlice<UInt8>) -> UInt8? {
        let text = String(decoding: digits, as: UTF8.self)
        guard text.utf8.count == 2, text.allSatisfy(\.isHexDigit) else { return nil }
        return UInt8(text, radix: 16)
    }
}
