internal import AuthContract

extension RequestVerifier {
    /// Verifies an App Attest assertion over the bytes that the request signs, if there is one.
    ///
    /// - Returns: the assertion that the app's policy demands on this path and that is missing.
    func checkAssertion(
        _ request: IncomingRequest, _ signed: SignedRequest, _ verified: VerifiedRequest
    ) async throws(Refusal) -> AssertionDemand? {
        let text = try wellFormed { try request.headers.atMostOne(HeaderName.assertion) }
        guard let text else {
            return verified.device.platform == .ios ? verified.app.assertionPaths.demand(on: signed.path) : nil
        }
        guard let object = Base64.standard.decode(text) else {
            throw Refusal(malformed: ContractError("\(HeaderName.assertion) must be padded standard base64"))
        }
        // Another node may have replaced the attested key since the row was cached.
        guard let device = try await devices.read(verified.deviceID, of: verified.appID),
            let evidence = device.appAttest
        else { throw Refusal(.invalidAssertion, "the device has no attested key") }
        let counter: UInt32
        do {
            counter = try verified.app.verifyAssertion(object, by: evidence, over: signed.message)
        } catch {
            await recorder.record(error.proof, .request, of: verified.app, device: device.deviceID)
            throw error.refusal
        }
        let advanced = try await storeCall { () async throws(StoreError) in
            try await deviceStore.advanceCounter(
                device.deviceID, of: device.appID, attestedKey: evidence.keyID, to: counter)
        }
        guard advanced else { throw Refusal(.invalidAssertion, "the counter was used by another request") }
        devices.forget(device.deviceID)
        return nil
    }
}
