import AuthContract
import Crypto
import Foundation
import StrictJSON

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Registers devices with a running service, and writes their signed requests as files for wrk. Each request can be
/// verified once.
///
///     SignedTraffic http://127.0.0.1:8080 bench.app CREDENTIAL FOLDER COUNT
///
/// Each thread N of wrk, counted from 0, has two files. `status-N` has requests `GET /auth/v1/device/status`. `verify-N`
/// has requests `POST /auth/v1/verify`, which ask about another service's request. A file has the bytes of each request
/// as sent, and a byte 0x1E after each request.
@main
struct SignedTraffic {
    private static let threads = 2

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 6, let count = Int(arguments[5]) else {
            print("usage: SignedTraffic URL APP CREDENTIAL FOLDER COUNT")
            exit(2)
        }
        let (url, app, credential) = (arguments[1], try AppID(arguments[2]), arguments[3])
        let began = ContinuousClock.now
        // The service accepts a burst of 4,000 requests of each device. Of the 2 * COUNT requests, each device signs about 3,000.
        let number = max(64, 2 * count / 3000)
        let devices = try await withThrowingTaskGroup(of: Device.self) { group in
            var devices: [Device] = []
            for index in 0..<number {
                if index >= 32, let device = try await group.next() { devices.append(device) }
                group.addTask { try await Device.register(at: url, app) }
            }
            while let device = try await group.next() { devices.append(device) }
            return devices
        }
        let seconds = began.duration(to: .now) / .seconds(1)
        print(
            String(
                format: "%d devices registered over HTTP, 32 at a time: %.0f/s", devices.count,
                Double(devices.count) / seconds))
        let host = String(url.dropFirst("http://".count))
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<threads {
                group.addTask {
                    let own = stride(from: thread, to: devices.count, by: threads).map { devices[$0] }
                    for kind in ["status", "verify"] {
                        var text = Data()
                        for index in 0..<count / threads {
                            let device = own[index % own.count]
                            let request =
                                kind == "status"
                                ? device.status(app, host) : device.verify(app, host, credential: credential)
                            text += Data(request) + [0x1E]
                        }
                        try? text.write(to: URL(fileURLWithPath: "\(arguments[4])/\(kind)-\(thread)"))
                    }
                }
            }
        }
    }
}

struct Device: Sendable {
    let id: DeviceID
    let key: P256.Signing.PrivateKey

    /// Registers a device with a development proof instead of an attestation.
    static func register(at url: String, _ app: AppID) async throws -> Device {
        let challenge = try ChallengeResponse(
            JSONFields(await post(url + Route.challenge.rawValue, ChallengeRequest(appID: app).json))
        ).challenge
        let key = P256.Signing.PrivateKey()
        let text = DevicePublicKey(key.publicKey).base64
        let nonce = BindingNonce(challenge: challenge, publicKeyText: text)
        let proof = try key.signature(for: KeyProof.registration(nonce)).derRepresentation
        let request = RegisterRequest(
            appID: app, publicKeyText: text, challenge: challenge, platform: .ios,
            proof: RegisterRequest.developmentProof, keyProof: Array(proof))
        let answer = try RegisterResponse(JSONFields(await post(url + Route.register.rawValue, request.json)))
        return Device(id: answer.deviceID, key: key)
    }

    private static func post(_ url: String, _ body: JSONObject) async throws -> JSONValue {
        guard let url = URL(string: url) else { throw URLError(.badURL) }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data(JSONValue.object(body).bytes)
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.setValue("true", forHTTPHeaderField: HeaderName.developmentMode)
        let (data, response) = try await URLSession.shared.data(for: request)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
            print(String(decoding: data, as: UTF8.self))
            throw URLError(.badServerResponse)
        }
        return try JSONValue(parsing: Array(data))
    }

    private func headers(_ app: AppID, _ method: String, _ path: String) -> [(name: String, value: String)] {
        let timestamp = UnixTime(Int64(time(nil)))
        let message = SchemeOneMessage.bytes(method: method, path: path, timestamp: timestamp, body: [])
        guard let signature = try? key.signature(for: message) else { return [] }
        return SchemeOneHeaders(
            appID: app, deviceID: id, signature: RequestSignature(signature), timestamp: timestamp,
            nonce: RequestNonce(from: SystemRandom())
        ).fields
    }

    func status(_ app: AppID, _ host: String) -> [UInt8] {
        let path = Route.status.rawValue
        let lines = headers(app, "GET", path).map { "\($0.name): \($0.value)\r\n" }.joined()
        return Array("GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(lines)\r\n".utf8)
    }

    func verify(_ app: AppID, _ host: String, credential: String) -> [UInt8] {
        let path = "/v1/readings"
        let question = JSONObject([
            ("method", "GET"), ("scheme", "https"), ("authority", "api.example.com"), ("path", .string(path)),
            ("query", .null),
            ("headers", .array(headers(app, "GET", path).map { .array([.string($0.name), .string($0.value)]) })),
            ("body", ""),
        ])
        let body = JSONValue.object(question).bytes
        let head =
            "POST \(Route.verify.rawValue) HTTP/1.1\r\nHost: \(host)\r\nAuthorization: Bearer \(credential)\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n\r\n"
        return Array(head.utf8) + body
    }
}
