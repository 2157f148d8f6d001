import AuthContract
import AuthService
import Crypto
import Foundation
import ServiceTestHelpers
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// One line for each request: its outcome, its app and the hash of its device, but no device id, signature, body or
/// proof.
@Suite("The request log") struct RequestLogTests {
    @Test("every kind of request is one line without secrets") func oneLine() async throws {
        let lines = LogLines()
        try await TestServer.with(logger: lines.logger) { server in
            let device = try await TestDevice.register(at: server)
            let headers = try device.headers("GET", Route.status.rawValue, at: server.clock.now)
            for _ in 0..<2 { _ = try await server.send("GET", Route.status.rawValue, headers) }
            let service = try await server.credential(.service, apps: [TestServer.appID])
            let question = try device.question(at: server.clock.now)
            _ = try await server.post(.verify, question, [("Authorization", "Bearer \(service)")])
            let admin = try await server.credential(.admin)
            let path = "/apps/com.example.app/devices/\(device.id)"
            _ = try await server.administer("GET", path, admin)
            _ = try await server.administer("GET", "/devices?app_id=com.example.app&device_id=\(device.id)", admin)
            _ = try await server.administer("POST", "\(path)/approve", admin)
            _ = try await server.administer("GET", "/no/such/\(device.id)", admin)

            let requests = lines.all.filter { $0.message == "request" }
            let hash = SHA256.hash(data: Data(device.id.utf8)).prefix(8).map { String(format: "%02x", $0) }.joined()
            #expect(
                requests.map { "\($0.metadata["route"] ?? "") \($0.metadata["outcome"] ?? "")" } == [
                    "/auth/v1/device/challenge ok", "/auth/v1/device/register registered", "/auth/v1/device/status ok",
                    "/auth/v1/device/status NONCE_REPLAY", "/auth/v1/verify verified",
                    "/admin/v1/apps/{app_id}/devices/{device_id} ok", "/admin/v1/devices ok",
                    "/admin/v1/apps/{app_id}/devices/{device_id}/approve CONFLICT", "unknown NOT_FOUND",
                ])
            let devices = requests.map { $0.metadata["device"] ?? "" }
            #expect(devices == ["", hash, hash, hash, hash, hash, "", hash, ""])
            #expect(requests.prefix(5).allSatisfy { $0.metadata["app"] == TestServer.appID })
            #expect(requests.allSatisfy { Int($0.metadata["microseconds"] ?? "") != nil })
            // No line contains a sent secret, whatever the line is about.
            let everything = lines.all.map { "\($0.message) \($0.metadata)" }.joined(separator: "\n")
            let sent = headers.filter { [HeaderName.deviceID, HeaderName.signature, HeaderName.nonce].contains($0.0) }
            #expect(sent.count == 3)
            for secret in sent.map(\.1) + [service, admin] {
                #expect(!everything.contains(secret))
            }
        }
    }

    @Test(
        "the time of a Signature-Input is its created parameter, if that is a number",
        arguments: [
            ("", nil), ("sig=();created=1750000000", 1_750_000_000), (";created=", nil), (";created=-1", nil),
            (";created=99999999999999999999", nil), ("created=1", nil),
        ] as [(String, Int64?)])
    func claimedTime(input: String, time: Int64?) {
        #expect(HeaderFields([(HeaderName.signatureInput, input)]).claimedTime == time)
    }
}
