import Foundation
import SynheartAuth

// phone [SERVICE]: registers this machine as a device of an app in development, and sends a signed request to the service.
let service = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1:8080"
let app = "com.example.app"

do {
    var configuration = try SynheartAuth.Configuration(baseUrl: service)
    #if DEBUG
        // Keys in files, and a development proof, which proves nothing. Release builds of the SDK have neither.
        let folder = FileManager.default.currentDirectoryPath + "/phone-files"
        configuration.storage = FileStorage(directory: folder)
        configuration.keyStore = SoftwareKeyStore(directory: folder + "/keys")
        configuration.attestation = DevelopmentAttestation()
    #endif
    let auth = SynheartAuth(configuration)

    let registration = try await auth.registerDevice(appID: app)
    print("registerDevice: \(registration.status), device id \(registration.deviceId)")
    let answer = try await auth.send(
        TransportRequest(method: "GET", url: service + "/auth/v1/device/status", headers: HeaderFields(), body: []),
        appID: app)
    print("send: \(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
} catch {
    print(error)
    exit(1)
}
