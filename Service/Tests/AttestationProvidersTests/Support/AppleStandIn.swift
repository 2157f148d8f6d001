import AppAttest
import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import Foundation
import StrictJSON

import class Bytes.Locked

@testable import AttestationProviders

/// A stand-in for Apple's receipt server. It checks each request, and returns a newer receipt with a risk metric.
final class AppleStandIn: Sendable {
    static let team = "TEAMID1234"
    static let keyID = "KEYID67890"
    static let appID = "TEAMID1234.com.example.app"

    let clock: ManualClock
    let script = Script()
    let signingKey = P256.Signing.PrivateKey()
    let authority: AppleAuthority
    let device: AppleDevice
    let key = AppleAttestKey()
    private let faults = Locked<[String]>([])

    init(clock: ManualClock = ManualClock()) throws {
        self.clock = clock
        authority = try AppleAuthority(from: clock.date.addingTimeInterval(-86_400))
        device = AppleDevice(
            system: .iOS("27.0"), app: AppleApp(appID: Self.appID, environment: .production), authority: authority)
    }

    var complaints: [String] { faults.withLock { $0 } }

    func receipt(metric: Int = 3, options: AppleReceiptOptions = AppleReceiptOptions()) throws -> [UInt8] {
        try device.exchangedReceipt(
            for: key, clientDataHash: [1, 2, 3], riskMetric: metric, at: clock.date, options: options)
    }

    func answer(_ request: StandIn.Received) throws -> StandIn.Answer {
        guard request.method == "POST", request.path == "/v1/attestationData" else {
            return complain(404, request.path)
        }
        // Apple's example sends the token alone, without "Bearer".
        guard let token = request["authorization"].flatMap({ OpenedJWT($0) }),
            token.header["alg"] == "ES256", token.header["kid"]?.string == Self.keyID,
            token.claims["iss"]?.string == Self.team, token.claims["iat"]?.integer == clock.now.seconds,
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: token.signature),
            signingKey.publicKey.isValidSignature(signature, for: token.signingInput)
        else { return complain(401, "token \(request["authorization"] ?? "")") }
        guard let sent = Base64.standard.decode(request.text), (try? Receipt(parsing: sent)) != nil else {
            return complain(400, "body")
        }
        if let scripted = script.next() { return scripted }
        return .text(200, Base64.standard.encode(try receipt()))
    }

    private func complain(_ status: Int, _ fault: String) -> StandIn.Answer {
        faults.withLock { $0.append(fault) }
        return .text(status, "")
    }

    func key(prefixes: Set<String>? = nil) async throws -> DeviceCheckKey {
        try DeviceCheckKey(
            teamID: Self.team, keyID: Self.keyID, pem: signingKey.pemRepresentation, prefixes: prefixes)
    }

    var verifier: ReceiptVerifier {
        get throws {
            let anchors = TrustAnchors(
                attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot])
            guard let anchors else { throw CancellationError() }
            return ReceiptVerifier(trustAnchors: anchors)
        }
    }
}

extension ManualClock {
    var date: Date { Date(timeIntervalSince1970: TimeInterval(now.seconds)) }
}

typealias AttestedAppID = AppleAppID
