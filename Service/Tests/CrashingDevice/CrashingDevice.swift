import AuthContract
import CCrashPoints
import Foundation
import SoftwareDevice
import StrictJSON
import SynheartAuth

/// The SDK on files, in a process that kills itself at a chosen point.
///
///     CrashingDevice register|rotate|reset|recover URL APP DIRECTORY AUTHORITY [android]
///
/// `register`, `rotate` and `reset` do one operation. `rotate` and `reset` first register, without crash points. The
/// process dies at the point that CRASH_AT names. Without CRASH_AT, it prints the number of points. `recover` acts
/// like an app at its next launch, and prints the state of the device.
///
///     CrashingDevice conformance [MISBEHAVIOUR]
///
/// The second form runs the steps that `synheart-auth conformance client` asks for. See `ConformanceClient`.
@main struct CrashingDevice {
    let app: String
    let directory: String
    let url: String
    let sdk: SynheartAuth

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.first == "conformance" { return try await ConformanceClient.run(arguments.dropFirst().first) }
        guard arguments.count == 5 || (arguments.count == 6 && arguments[5] == "android") else {
            print("CrashingDevice register|rotate|reset|recover URL APP DIRECTORY AUTHORITY [android]")
            exit(2)
        }
        let device = try CrashingDevice(
            url: arguments[1], app: arguments[2], directory: arguments[3], authority: arguments[4],
            isAndroid: arguments.count == 6)
        let answer =
            switch arguments[0] {
            case "recover": try await device.recover()
            default: try await device.run(arguments[0])
            }
        print(answer.text())
    }

    init(url: String, app: String, directory: String, authority: String, isAndroid: Bool) throws {
        self.app = app
        self.directory = directory
        self.url = url
        var configuration = try SynheartAuth.Configuration(baseUrl: url)
        configuration.storage = MortalStorage(base: FileStorage(directory: directory))
        let keys = SoftwareKeyStore(directory: directory + "/keys")
        if isAndroid {
            let keys = AttestedKeyStore(base: keys, directory: directory + "/challenges")
            configuration.keyStore = MortalKeyStore(base: keys)
            configuration.attestation = MortalAttestation(
                base: try SimulatedAndroid(authority: authority, keys: keys))
        } else {
            configuration.keyStore = MortalKeyStore(base: keys)
            configuration.attestation = MortalAttestation(
                base: SimulatedAppAttest(
                    iosAppID: "\(SoftwareDevice.team).com.example.app", authority: try AuthorityFile.load(authority),
                    directory: directory + "/app-attest"))
        }
        configuration.transport = MortalTransport(base: DefaultTransport())
        configuration.sleeper = Impatient()
        configuration.rotatesAutomatically = false
        sdk = SynheartAuth(configuration)
    }

    private func run(_ operation: String) async throws -> JSONValue {
        if operation != "register" { try await sdk.registerDevice(appID: app) }
        crash_points_arm(ProcessInfo.processInfo.environment["CRASH_AT"].flatMap { Int($0) } ?? -1)
        switch operation {
        case "register": try await sdk.registerDevice(appID: app)
        case "rotate": try await sdk.rotateKey(appID: app)
        default: try await sdk.resetDeviceIdentity(appID: app, reason: .userRequested)
        }
        return ["points": .integer(crash_points_disarm())]
    }

    /// Registers, completes an unfinished rotation, and lets the service verify a signature.
    private func recover() async throws -> JSONValue {
        let registration = try await sdk.registerDevice(appID: app)
        try await sdk.maintain(appID: app)
        let signed = try await sdk.signRequest(appID: app, method: "GET", path: Route.status.rawValue)
        let answer = try await DefaultTransport().send(
            TransportRequest(
                method: "GET", url: url + Route.status.rawValue,
                headers: HeaderFields(signed.fields.map { ($0.name, $0.value) }), body: []))
        let keys = try FileManager.default.contentsOfDirectory(atPath: directory + "/keys")
        return [
            "device_id": .string(registration.deviceId), "status": .integer(answer.status),
            "keys": .integer(keys.count { $0.hasSuffix(".key") }),
        ]
    }
}
