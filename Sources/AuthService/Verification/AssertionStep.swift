internal import AuthContract

extension RequestVerifier {
    /// An App Attest assertion over the same bytes that the request signs: demanded where the app's policy names the path,
    /// and verified wherever one is sent.
    func checkAssertion(
        _ request: IncomingRequest, _ verified: VerifiedRequest, path: RequestPath
    ) async throws(Refusal) {
        let device = verified.device
        let text = try wellFormed { try request.headers.atMostOne(HeaderName.assertion) }
        guard let text else {
            let prefixes = verified.app.record.ios?.assertionsRequiredOn ?? []
            guard device.platform == .ios, prefixes.contains(where: { path.isBelow($0) }) else { return }
            throw Refusal(.assertionRequired, "no assertion on \(path)")
        }
        guard let object = Base64.standard.decode(text) else {
            throw Refusal(malformed: ContractError("\(HeaderName.assertion) must be padded standard base64"))
        }
        guard let evidence = device.appAttest else {
            throw Refusal(.invalidAssertion, "the device has no attested key")
        }
        let counter = try verified.app.verifyAssertion(object, by: evidence, over: verified.message)
        let advanced = try await asking { () async throws(StoreError) in
            try await deviceStore.advanceCounter(
                device.deviceID, of: device.appID, attestedKey: evidence.keyID, to: counter)
        }
        guard advanced else { throw Refusal(.invalidAssertion, "the counter was used by another request") }
        devices.forget(device.deviceID)
    }
}
