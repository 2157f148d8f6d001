internal import AuthContract

extension RequestVerifier {
    /// Verifies an App Attest assertion over the bytes that the request signs, wherever one is sent, and demands one where
    /// the app's policy does.
    ///
    /// - Returns: the demand that is still to be satisfied: on rotate-key the body may do it. Else nil.
    @inline(__always)
    func checkAssertion(
        _ request: IncomingRequest, _ verified: VerifiedRequest, path: RequestPath, for operation: Operation
    ) async throws(Refusal) -> AssertionDemand? {
        let text = try wellFormed { try request.headers.atMostOne(HeaderName.assertion) }
        guard let text else {
            guard verified.device.platform == .ios, let demand = verified.app.assertionPaths.demand(on: path) else {
                return nil
            }
            guard operation == .rotateKey else { throw Refusal(demanding: demand, "no assertion on \(path)") }
            return demand
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
            counter = try verified.app.verifyAssertion(object, by: evidence, over: verified.message)
        } catch {
            await recorder.note(error.proof, .request, of: verified.app, device: device.deviceID)
            throw error.refusal
        }
        let advanced = try await asking { () async throws(StoreError) in
            try await deviceStore.advanceCounter(
                device.deviceID, of: device.appID, attestedKey: evidence.keyID, to: counter)
        }
        guard advanced else { throw Refusal(.invalidAssertion, "the counter was used by another request") }
        devices.forget(device.deviceID)
        return nil
    }
}
