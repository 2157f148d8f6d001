import AuthContract
import Bytes
import Crypto
import Foundation
import Testing

@testable import SynheartAuth

/// Requests that need an App Attest assertion.
@Suite struct AssertionTests {
    private struct Asserting: AttestationProvider {
        let base: TestAttestation
        var failure: AttestationError?
        let asked = Locked<[(handle: String, hash: [UInt8])]>([])
        var platform: Platform { base.platform }

        func makeHandle() async throws(AttestationError) -> String? { try await base.makeHandle() }
        func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
            try await base.attest(subject)
        }
        func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8] {
            asked.withLock { $0.append((handle, clientDataHash)) }
            if let failure { throw failure }
            return TestAttestation.assertion(handle, clientDataHash)
        }
    }

    private let request = TransportRequest(
        method: "POST", url: "\(SendTests.api)/v1/pay", headers: HeaderFields(), body: Array("{}".utf8))

    /// A registered device, whose next request needs an assertion.
    private func demanding(
        _ provider: (Phone) -> any AttestationProvider, times: Int = 1
    ) async throws -> (Phone, SynheartAuth) {
        let phone = Phone()
        let provider = provider(phone)
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.attestation = provider
        }
        try await sdk.registerDevice(appID: Phone.app)
        await phone.service.answer(
            path: "/v1/pay", with: await phone.service.answer(FakeService.Refusal(.assertionRequired)), times: times)
        return (phone, sdk)
    }

    private func assertions(_ phone: Phone) async -> [[String]] {
        await phone.service.requests.filter { $0.url == request.url }.map { $0.headers.values("X-Synheart-Assertion") }
    }

    @Test func `after ASSERTION_REQUIRED send signs again with an assertion of the attested handle`() async throws {
        let phone = Phone()
        let provider = Asserting(base: phone.attestation)
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.attestation = provider
        }
        try await sdk.registerDevice(appID: Phone.app)
        await phone.service.answer(
            path: "/v1/pay", with: await phone.service.answer(FakeService.Refusal(.assertionRequired)))
        #expect(try await sdk.send(request, appID: Phone.app).status == 200)
        let asked = try #require(provider.asked.withLock { $0.first })
        let assertion = Base64.standard.encode(TestAttestation.assertion("handle-1", asked.hash))
        #expect(await assertions(phone) == [[], [assertion]])
        #expect(asked.handle == "handle-1" && provider.asked.withLock { $0.count } == 1)
        // The assertion covers exactly what the key signed.
        let sent = try SchemeOneHeaders(try #require(await phone.service.requests.last).headers)
        let message = SchemeOneMessage.bytes(
            method: "POST", path: "/v1/pay", timestamp: sent.timestamp, body: request.body)
        #expect(asked.hash == Array(SHA256.hash(data: Data(message))))
    }

    @Test func `a second ASSERTION_REQUIRED is thrown`() async throws {
        let (phone, sdk) = try await demanding({ Asserting(base: $0.attestation) }, times: 2)
        await expectError(.server("ASSERTION_REQUIRED")) { try await sdk.send(request, appID: Phone.app) }
        #expect(await assertions(phone).count == 2)
    }

    @Test(
        arguments: AttestationError.Code.allCases.filter { $0 != .handleInvalid }.map {
            ($0, $0 == .unsupported ? SynheartAuthError.Code.attestationUnavailable : .attestationFailed)
        })
    func `an assertion that cannot be had fails the call, and nothing else is sent`(
        failure: AttestationError.Code, code: SynheartAuthError.Code
    ) async throws {
        let (phone, sdk) = try await demanding {
            Asserting(base: $0.attestation, failure: AttestationError(failure, reason: "why"))
        }
        let error = await expectError(code) { try await sdk.send(request, appID: Phone.app) }
        #expect(error?.cause as? AttestationError == AttestationError(failure, reason: "why"))
        #expect(await assertions(phone) == [[]])
    }

    @Test func `a provider without assertions cannot assert`() async throws {
        struct Silent: AttestationProvider {
            let base: TestAttestation
            var platform: Platform { base.platform }
            func makeHandle() async throws(AttestationError) -> String? { try await base.makeHandle() }
            func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
                try await base.attest(subject)
            }
        }
        let (_, sdk) = try await demanding { Silent(base: $0.attestation) }
        await expectError(.attestationUnavailable) { try await sdk.send(request, appID: Phone.app) }
    }

    @Test func `a device without an attested handle cannot assert, and a reset helps`() async throws {
        for handle in [nil, IdentityRecord.AttestationKey(id: "handle-1", isUsed: false)] {
            let (phone, sdk) = try await demanding { Asserting(base: $0.attestation) }
            var record = try phone.record()
            record.attestationKey = handle
            phone.storage.put(record.bytes, RecordName(record.appID))
            let error = await expectError(.attestationFailed) { try await sdk.send(request, appID: Phone.app) }
            #expect(error?.recovery == .reset)
        }
    }
}
