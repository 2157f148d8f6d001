import AppAttest
import Crypto
import Foundation

// The samples of AppAttest's pages. DocumentationTests compares the pages with this file.

struct Misconfigured: Error {}

struct Verifiers: Sendable {
    let attestations: AttestationVerifier
    let assertions: AssertionVerifier
    let receipts = ReceiptVerifier()

    init(appID text: String) throws {
        guard let appID = AppleAppID(text) else { throw Misconfigured() }
        let policy = AppAttestPolicy(appIDs: [appID])
        attestations = AttestationVerifier(policy: policy)
        assertions = AssertionVerifier(policy: policy)
    }
}

func makeChallenge() -> [UInt8] {
    let challenge = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
    return challenge
}

func register(
    object: [UInt8], keyID text: String, challenge: [UInt8], with verifiers: Verifiers
) -> VerifiedAttestation? {
    guard let keyID = KeyID(base64: text) else { return nil }
    do {
        return try verifiers.attestations.verify(
            object, keyID: keyID, clientDataHash: ClientDataHash(hashing: challenge), at: Date())
    } catch {
        print(error)  // NONCE_MISMATCH at nonce: the leaf certifies another nonce
        return nil
    }
}

struct Order: Decodable {
    let challenge: Data
    let item: String
}

func verify(
    assertion: Data, clientData: Data, challenge: Data, storedKey: Data, storedExtensionMark: Bool,
    storedCounter: UInt32, with verifiers: Verifiers
) throws -> VerifiedAssertion {
    try verifiers.assertions.verify(
        assertion,
        clientData: clientData,
        challenge: .clientData(holds: challenge) { clientData in
            (try? JSONDecoder().decode(Order.self, from: Data(clientData))).map { Array($0.challenge) }
        },
        publicKey: P256.Signing.PublicKey(x963Representation: storedKey),
        attestedExtensions: storedExtensionMark,
        previousCounter: storedCounter)
}

func receipt(of attestation: VerifiedAttestation, with verifiers: Verifiers) -> VerifiedReceipt? {
    do {
        return try verifiers.receipts.verify(
            attestation.receipt, against: ReceiptExpectations(of: attestation), at: Date())
    } catch {
        print(error)  // RECEIPT_TOO_OLD at times: created 412.0 s ago
        return nil
    }
}

func exchange(
    _ receipt: [UInt8], environment: AttestEnvironment, key: DeviceCheckSigner,
    send: (ReceiptExchangeRequest) async throws -> (status: Int, body: Data)
) async throws -> [UInt8]? {
    let request = try ReceiptExchangeRequest(
        receipt: receipt, environment: environment, signedBy: key, at: Date())
    // POST request.body to request.url, with request.authorization as the header Authorization.
    let (status, body) = try await send(request)
    switch ReceiptExchangeAnswer(status: status, body: body) {
    case .receipt(let renewed): return renewed
    case .tooEarly, .noData: return nil
    case let failure: throw ExchangeFailed(answer: failure)
    }
}

struct ExchangeFailed: Error {
    let answer: ReceiptExchangeAnswer
}

func riskMetric(
    of bytes: [UInt8], _ appID: AppleAppID, _ keyID: KeyID, _ environment: AttestEnvironment, with verifiers: Verifiers
) throws -> Int? {
    let expected = ReceiptExpectations(
        appIDs: [appID], keyID: keyID, clientDataHash: nil, environment: environment)
    let renewed = try verifiers.receipts.verify(bytes, against: expected, at: Date())
    let metric = renewed.fields.riskMetric
    return metric
}

// Coming from other libraries.

func fromDevicecheck(
    appID: AppleAppID, object: Data, keyID: KeyID, challenge: Data, bytes: Data, clientData: Data,
    expectedChallenge: Data, clientDataChallenge: [UInt8], pkey: Data, count: UInt32
) throws {
    let policy = AppAttestPolicy(appIDs: [appID], environments: [.production])

    let attestation = try AttestationVerifier(policy: policy).verify(
        object, keyID: keyID, clientDataHash: ClientDataHash(hashing: challenge), at: Date())

    let assertion = try AssertionVerifier(policy: policy).verify(
        bytes, clientData: clientData,
        challenge: .clientData(holds: expectedChallenge) { _ in clientDataChallenge },
        publicKey: P256.Signing.PublicKey(derRepresentation: pkey), attestedExtensions: false, previousCounter: count)
    _ = (attestation, assertion)
}

func fromPyattest(appID: AppleAppID, object: Data, keyID: KeyID, nonce: Data) throws {
    let attestation = try AttestationVerifier(policy: AppAttestPolicy(appIDs: [appID])).verify(
        object, keyID: keyID, clientDataHash: ClientDataHash(hashing: nonce), at: Date())
    _ = attestation
}

func fromDevicecheckAppAttest(policy: AppAttestPolicy, object: Data, keyID: KeyID, challenge: Data) throws {
    let attestation = try AttestationVerifier(policy: policy).verify(
        object, keyID: keyID, clientDataHash: ClientDataHash(hashing: challenge), at: Date())
    _ = attestation
}
