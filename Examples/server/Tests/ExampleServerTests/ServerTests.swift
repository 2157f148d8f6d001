import AttestationTestKit
import Foundation
import Testing

@testable import ExampleServer

struct ServerTests {
    private let body = Data(#"{"value":21}"#.utf8)

    private func register(_ phone: Phone) async throws -> String {
        let answer = try await phone.client.post("/devices/ios", json: await phone.registration())
        #expect(answer.status == 201)
        return try answer.decoded(as: RegisteredDevice.self).id
    }

    private func register(_ phone: AndroidPhone) async throws -> String {
        let answer = try await phone.client.post("/devices/android", json: await phone.registration())
        #expect(answer.status == 201)
        return try answer.decoded(as: RegisteredDevice.self).id
    }

    @Test func `an iPhone registers and signs requests`() async throws {
        var phone = Phone(try Client())
        let id = try await register(phone)
        for _ in 0..<2 {
            let authorization = try await phone.authorization(id, "/readings", body)
            let answer = try await phone.client.post("/readings", body, authorization: authorization)
            #expect(answer.status == 200)
            #expect(try answer.decoded(as: ReadingAccepted.self).device == id)
        }
    }

    @Test func `an Android phone registers and signs requests`() async throws {
        let phone = AndroidPhone(client: try Client())
        let id = try await register(phone)
        let authorization = try await phone.authorization(id, "/readings", body)
        let answer = try await phone.client.post("/readings", body, authorization: authorization)
        #expect(answer.status == 200)
        #expect(try answer.decoded(as: ReadingAccepted.self).bytes == body.count)
    }

    @Test func `a replayed request is refused`() async throws {
        var phone = Phone(try Client())
        let id = try await register(phone)
        let authorization = try await phone.authorization(id, "/readings", body)
        #expect(try await phone.client.post("/readings", body, authorization: authorization).status == 200)
        let replay = try await phone.client.post("/readings", body, authorization: authorization)
        #expect(replay.status == 403)
        #expect(replay.code == "CHALLENGE_UNKNOWN")
    }

    @Test func `a request with another body, path or device is refused`() async throws {
        let client = try Client()
        var phone = Phone(client)
        let android = AndroidPhone(client: client)
        let (id, other) = (try await register(phone), try await register(android))
        for signed in [
            try await phone.authorization(id, "/readings", Data("{}".utf8)),
            try await phone.authorization(id, "/readings?all", body),
            try await phone.authorization(other, "/readings", body),
            try await android.authorization(other, "/readings", Data("{}".utf8)),
            try await android.authorization(id, "/readings", body),
            try await android.authorization("unknown", "/readings", body),
        ] {
            let answer = try await client.post("/readings", body, authorization: signed)
            #expect(answer.status == 401)
            #expect(answer.code == "NOT_AUTHENTICATED")
        }
    }

    @Test(arguments: [nil, "", "Bearer x", "Device a b", "Device a !! !!", "Device  a  b"] as [String?])
    func `a request without a device's authorization is refused`(authorization: String?) async throws {
        let answer = try await Client().post("/readings", body, authorization: authorization)
        #expect(answer.status == 401)
    }

    @Test func `an assertion whose counter was used is refused`() async throws {
        var phone = Phone(try Client())
        let id = try await register(phone)
        var clone = phone
        let first = try await phone.authorization(id, "/readings", body)
        let second = try await clone.authorization(id, "/readings", body)
        #expect(try await phone.client.post("/readings", body, authorization: first).status == 200)
        #expect(try await phone.client.post("/readings", body, authorization: second).status == 401)
    }

    @Test func `of concurrent copies with one counter, only one is accepted`() async throws {
        let phone = Phone(try Client())
        let id = try await register(phone)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<16 {
                group.addTask { [body] in
                    var clone = phone
                    let authorization = try await clone.authorization(id, "/readings", body)
                    return try await phone.client.post("/readings", body, authorization: authorization).status
                }
            }
            return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
        }
        #expect(statuses == [200: 1, 401: 15])
    }

    @Test func `a challenge registers one device`() async throws {
        let client = try Client()
        let registration = try await Phone(client).registration()
        #expect(try await client.post("/devices/ios", json: registration).status == 201)
        #expect(try await client.post("/devices/ios", json: registration).code == "CHALLENGE_UNKNOWN")
    }

    @Test func `a key registers once`() async throws {
        let client = try Client()
        let phone = AndroidPhone(client: client)
        _ = try await register(phone)
        let again = try await client.post("/devices/android", json: await phone.registration())
        #expect(again.status == 409)
        #expect(again.code == "KEY_TAKEN")
    }

    @Test func `an attestation with a counter above 0 is refused`() async throws {
        let client = try Client()
        var options = AppleAttestationOptions()
        options.counter = 1
        let answer = try await client.post("/devices/ios", json: await Phone(client).registration(options: options))
        #expect(answer.status == 403)
        #expect(answer.code == "ATTESTATION_REFUSED")
    }

    @Test func `a rooted phone, an unlocked one and a borrowed verdict are refused`() async throws {
        let client = try Client()
        var rooted = PlayTokenOptions()
        rooted.deviceLabels = []
        var unlocked = KeyAttestationOptions()
        unlocked.rootOfTrust?.deviceLocked = 0x00
        for registration in [
            try await AndroidPhone(client: client).registration(token: rooted),
            try await AndroidPhone(client: client).registration(chain: unlocked),
            try await AndroidPhone(client: client).registration(nonce: "YSBub25jZSBvZiBhbm90aGVyIHBob25l"),
        ] {
            #expect(try await client.post("/devices/android", json: registration).code == "ATTESTATION_REFUSED")
        }
    }

    @Test func `a token that cannot be checked is no verdict`() async throws {
        let client = try Client(hasResponseKeys: false)
        let answer = try await client.post(
            "/devices/android", json: await AndroidPhone(client: client).registration())
        #expect(answer.status == 503)
        #expect(answer.code == "COULD_NOT_CHECK")
    }

    @Test func `a body that is no registration is refused`() async throws {
        let client = try Client()
        for body in ["", "[]", #"{"challenge":"!"}"#] {
            #expect(try await client.post("/devices/ios", Data(body.utf8)).status == 400)
        }
        #expect(try await client.post("/devices/ios", Data(repeating: 0x20, count: 64 * 1024 + 1)).status == 413)
    }
}
