import ArgumentParser
import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON
import SynheartAuth

/// The commands for a software device for development.
struct DeviceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "device",
        abstract: "A software device: the real SDK, with keys in a folder, attested by the test kit.",
        discussion: """
            The app must trust the test kit's Apple or Google, like the record of `apps example` (channels dev and staging only).

              synheart-auth device register
              synheart-auth device sign --method POST --path /v1/pay --body body.json \\
                  > headers
              curl -H @headers --data-binary @body.json https://api.example.com/v1/pay
              synheart-auth device sign --scheme 2 \\
                  --url 'https://api.example.com/v1/pay?a=b'
              synheart-auth device rotate
              synheart-auth device register --platform android --dir android-device
            """,
        subcommands: [Register.self, Sign.self, Status.self, Rotate.self, Reset.self])

    enum Phone: String, ExpressibleByArgument, CaseIterable { case ios, android }

    /// The options that name the device of a command.
    struct Folder: ParsableArguments {
        @Option(name: .customLong("dir"), help: "The folder of the device.") var directory =
            "synheart-device"
        @OptionGroup var authorities: AuthorityOptions

        /// The device that was registered from this folder.
        ///
        /// - Parameter origins: the origins to which it may send requests, in addition to the auth service.
        func device(
            origins: Set<RequestOrigin> = [], scheme: SignatureScheme = .one
        ) throws -> SoftwareDevice {
            guard let settings = try SoftwareDevice.Settings.load(directory) else {
                throw CommandFailure(.impossible, "there is no device in \(directory): `device register` makes one")
            }
            return try device(settings, origins: origins, scheme: scheme)
        }

        func device(
            _ settings: SoftwareDevice.Settings, origins: Set<RequestOrigin> = [], scheme: SignatureScheme = .one
        ) throws -> SoftwareDevice {
            switch settings.platform {
            case .ios:
                try SoftwareDevice(
                    directory: directory, settings: settings, authority: try authorities.apple(), origins: origins,
                    scheme: scheme)
            case .android:
                try SoftwareDevice(
                    directory: directory, settings: settings,
                    attestation: SimulatedAndroid(
                        package: settings.appID.text, authority: try authorities.google()), origins: origins,
                    scheme: scheme)
            }
        }
    }

    struct Register: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Register the device. Does nothing if it is registered.",
            discussion: """
                  synheart-auth device register
                  synheart-auth device register --url http://127.0.0.1:8080 \\
                      --app com.example.app --platform android
                """)
        @Option(help: "The auth service.") var url = "http://127.0.0.1:8080"
        @Option(name: .customLong("app"), help: "The app id.") var app = "com.example.app"
        @Option(help: "The simulated phone: ios or android.") var platform = Phone.ios
        @Option(name: .customLong("ios-app-id"), help: "Team id and bundle id that the attestation names.")
        var iosAppID: String?
        @OptionGroup var folder: Folder
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let appID = try AppID(app)
                let settings = SoftwareDevice.Settings(
                    url: url, appID: appID, platform: platform == .ios ? .ios : .android,
                    iosAppID: iosAppID ?? "\(SoftwareDevice.team).\(appID)")
                if let existing = try SoftwareDevice.Settings.load(folder.directory), existing.appID != appID {
                    throw CommandFailure(
                        .refused, "\(folder.directory) holds a device of \(existing.appID): choose another --dir")
                }
                let device = try folder.device(settings)
                let registration = try await asking {
                    try await device.sdk.registerDevice(appID: app)
                }
                try settings.save(folder.directory)
                try output.done(
                    "\(registration.status.rawValue) \(registration.deviceId)",
                    JSONObject([
                        ("status", .string(registration.status.rawValue)),
                        ("device_id", .string(registration.deviceId)), ("app_id", .string(app)),
                    ]))
                if registration.status == .pending { throw ExitCode(CommandFailure.Kind.refused.rawValue) }
            }
        }
    }

    struct Sign: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the headers of a signed request, as `curl -H @FILE` takes them.",
            discussion: """
                After a rotation that was cut short, the service may know another key than this device: `device status` finishes it.

                  synheart-auth device sign > headers
                  curl -H @headers http://127.0.0.1:8080/auth/v1/device/status
                  synheart-auth device sign --method POST --path /v1/pay --body body.json \\
                      > headers
                  synheart-auth device sign --scheme 2 \\
                      --url 'https://api.example.com/v1/pay?a=b'
                  synheart-auth device sign --path /auth/v1/device/status --assertion \\
                      > headers
                """)
        @Option(help: "The HTTP method.") var method = "GET"
        @Option(
            help: "Scheme 1: the path, escaped, without a query. Default, without --url: the service's status route.")
        var path: String?
        @Option(help: "The whole URL; needed for scheme 2, which signs all of it.") var url: String?
        @Option(help: "The signature scheme: 1, or 2 (RFC 9421). A device that has signed under 2 signs under 2.")
        var scheme = 1
        @Option(help: "A file with the body; - for standard input.") var body: String?
        @Flag(help: "Add an App Attest assertion, for a path on which the app demands one; iOS.") var assertion = false
        @OptionGroup var folder: Folder
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard SignatureScheme(rawValue: scheme) != nil else { throw ValidationError("--scheme is 1 or 2") }
            guard path == nil || url == nil else { throw ValidationError("give --path or --url, not both") }
            guard scheme == 1 || url != nil else { throw ValidationError("scheme 2 signs the whole --url") }
        }

        func run() async throws {
            try await reporting {
                let bytes = try body.map { try InputFile.bytes($0) } ?? []
                let headers = try await sign(bytes)
                guard !output.json else {
                    return try output.show(JSONObject(headers.fields.map { ($0.name, .string($0.value)) }))
                }
                let lines = headers.fields.map { "\($0.name): \($0.value)" }
                try StandardOutput.print(lines.joined(separator: "\n"))
            }
        }

        private func sign(_ bytes: [UInt8]) async throws -> SignedHeaders {
            guard let url, let scheme = SignatureScheme(rawValue: scheme) else {
                let device = try folder.device()
                guard !assertion else {
                    let url = device.settings.url + (path ?? Route.status.rawValue)
                    return try await sign(bytes, url, with: device)
                }
                return try await asking {
                    try await device.sdk.signRequest(
                        appID: device.settings.appID.text, method: method, path: path ?? Route.status.rawValue,
                        bodyBytes: bytes)
                }
            }
            // The user typed the URL, so any origin is allowed.
            let authority = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3)
            let origin = authority.joined(separator: "/").prefix { $0 != "?" && $0 != "#" }
            let device = try folder.device(origins: [try RequestOrigin(String(origin))], scheme: scheme)
            return try await sign(bytes, url, with: device)
        }

        private func sign(_ bytes: [UInt8], _ url: String, with device: SoftwareDevice) async throws -> SignedHeaders {
            try await asking {
                try await device.sdk.sign(
                    appID: device.settings.appID.text, method: method, url: url, bodyBytes: bytes,
                    asserting: assertion)
            }
        }
    }

    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show what the service knows about the device.",
            discussion: """
                  synheart-auth device status
                  synheart-auth device status --dir android-device --json
                """)
        @OptionGroup var folder: Folder
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let device = try folder.device()
                let answer = try await DeviceHTTP(device).send(.status)
                guard answer.status == 200 else { throw answer.failure }
                try output.show(answer.body.object ?? JSONObject())
            }
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace the key; the device id stays.",
            discussion: """
                  synheart-auth device rotate
                  synheart-auth device rotate --compromised
                """)
        @Flag(help: "The old key may be in other hands: it stops verifying at once.") var compromised = false
        @OptionGroup var folder: Folder
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let device = try folder.device()
                let rotation = try await asking {
                    try await device.sdk.rotateKey(
                        appID: device.settings.appID.text, reason: compromised ? .compromise : .scheduled)
                }
                try output.done(
                    "rotated \(rotation.deviceId), effective \(rotation.effectiveAt.iso8601)",
                    JSONObject([
                        ("status", "rotated"), ("device_id", .string(rotation.deviceId)),
                        ("effective_at", .integer(rotation.effectiveAt.seconds)),
                    ]))
            }
        }
    }

    struct Reset: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give the identity up and delete its key.",
            discussion: """
                  synheart-auth device reset
                """)
        @OptionGroup var folder: Folder
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let device = try folder.device()
                try await asking {
                    try await device.sdk.resetDeviceIdentity(
                        appID: device.settings.appID.text, reason: .userRequested)
                }
                try output.done("reset", JSONObject([("status", "unregistered")]))
            }
        }
    }
}

/// Runs an operation of the SDK. Turns its error into a sentence with the code and the remedy.
func asking<Value: Sendable>(
    _ operation: () async throws -> Value
) async throws(CommandFailure) -> Value {
    do {
        return try await operation()
    } catch {
        guard let error = error as? SynheartAuthError else { throw CommandFailure(.impossible, "\(error)") }
        let unanswered: [SynheartAuthError.Code] = [
            .networkError, .storageError, .server(ErrorCode.rateLimited.rawValue),
        ]
        throw CommandFailure(unanswered.contains(error.code) ? .impossible : .refused, "\(error)")
    }
}
