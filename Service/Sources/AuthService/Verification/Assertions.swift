@_spi(Service) internal import AuthContract

extension RequestVerifier {
    /// The bytes of the request's assertion; nil: there is none.
    ///
    /// - Throws: if the header is repeated, or is not padded standard base64.
    static func assertion(in headers: HeaderFields) throws(ContractError) -> [UInt8]? {
        guard let text = try headers.atMostOne(HeaderName.assertion) else { return nil }
        guard let object = Base64.standard.decode(text) else {
            throw ContractError("\(HeaderName.assertion) must be padded standard base64")
        }
        return object
    }

    /// Verifies the App Attest assertion over the bytes that the request signs, if there is one.
    ///
    /// - Parameter object: the assertion; nil: the request has none.
    /// - Returns: the assertion that the app's policy demands on this path and that is missing; nil if none is missing.
    func checkAssertion(
        _ object: [UInt8]?, _ verified: VerifiedRequest, _ verification: Verification?
    ) async throws(Refusal) -> AssertionDemand? {
        let signed = verified.request
        guard let object else {
            return verified.device.platform == .ios ? verified.app.assertionPaths.demand(on: signed.path) : nil
        }
        // Another node may have replaced the attested key since the row was cached.
        guard let device = try await devices.read(verified.deviceID, of: verified.appID),
            let evidence = device.appAttest
        else { throw Refusal(.invalidAssertion, "the device has no attested key") }
        let counter: UInt32
        do {
            counter = try verified.app.verifyAssertion(object, by: evidence, over: signed.message)
        } catch {
            if try await isRepeated(object, by: evidence, verification, signed) { return nil }
            throw error
        }
        await note(.begun, counter, in: verification, signed)
        let advanced = try await storeCall { () async throws(StoreError) in
            try await deviceStore.raise(
                .counter(counter, ofAppAttestKey: evidence.keyID), of: device.deviceID, app: device.appID)
        }
        guard advanced else {
            let now = try await devices.read(device.deviceID, of: device.appID)?.appAttest
            if let now, try await isRepeated(object, by: now, verification, signed) { return nil }
            throw Refusal(.invalidAssertion, "the counter was used by another request")
        }
        await note(.raised, counter, in: verification, signed)
        devices.forget(device.deviceID)
        return nil
    }
}

/// The paths on which requests of an app's iOS devices need an assertion: `assertions_required_on` or
/// `assertions_required_except`, prepared once.
struct AssertionPaths: Sendable {
    private enum Rule: Sendable {
        case none
        /// Paths with these prefixes. The comparison ignores escapes, case and repeated slashes (`LenientPath`).
        case on([(prefix: String, lenient: LenientPath)])
        /// All paths except those with these prefixes.
        case except([String])
    }

    private let rule: Rule

    init(_ app: IOSApp?) {
        if let prefixes = app?.assertionsRequiredExcept {
            rule = .except(prefixes)
        } else if let prefixes = app?.assertionsRequiredOn, !prefixes.isEmpty {
            rule = .on(prefixes.map { ($0, LenientPath($0)) })
        } else {
            rule = .none
        }
    }

    /// The demand on a request to this path; nil: none.
    ///
    /// The signature covers the path as the client sent it. But a backend may treat paths as equal that differ only in escapes, case
    /// or repeated slashes. So `/%70ay` needs an assertion if `/pay` does. Unless no path needs one, every path needs one that two
    /// servers could read differently.
    func demand(on path: RequestPath) -> AssertionDemand? {
        switch rule {
        case .none: return nil
        case _ where LenientPath.isAmbiguous(path.text): return AssertionDemand(prefix: nil)
        case .on(let prefixes):
            let lenient = LenientPath(path.text)
            return prefixes.first { lenient.isCovered(by: $0.lenient) }.map { AssertionDemand(prefix: $0.prefix) }
        case .except(let prefixes):
            return prefixes.contains(where: path.isBelow) ? nil : AssertionDemand(prefix: "/")
        }
    }
}
