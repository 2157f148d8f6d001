import AuthContract
import Crypto
import SoftwareDevice
import StrictJSON
import SynheartAuth

extension ConformanceCase {
    /// The case of an honest device that uses the SDK, from registration to deregistration.
    static let clients: [ConformanceCase] = [
        .init("client", "Writing a client", "the SDK registers, signs, rotates and deregisters") { stage in
            let sdk = try stage.sdk()
            let app = stage.appID.text
            let state = try await sdk.registerDevice(appID: app)
            try stage.require(state.status == .registered, "registration: \(state.status.rawValue)")
            for step in ["before", "after"] {
                let signed = try await sdk.signRequest(
                    appID: app, method: Route.token.method, path: Route.token.rawValue, bodyBytes: Array("{}".utf8))
                try await stage.accepted(
                    WireRequest.json(.token, Array("{}".utf8)).with(signed.fields.map { ($0.name, $0.value) }),
                    "\(step) its rotation")
                if step == "before" { try await sdk.rotateKey(appID: app) }
            }
            try await sdk.resetDeviceIdentity(appID: app, reason: .userRequested)
        }
    ]
}

extension Stage {
    /// The SDK with keys and records in memory.
    fileprivate func sdk() throws -> SynheartAuth {
        guard try RequestOrigin(options.url).isSecure else {
            throw CaseEnd.skipped("the SDK refuses http to another machine")
        }
        var configuration = try SynheartAuth.Configuration(baseUrl: options.url)
        configuration.transport = transport
        configuration.storage = VolatileStorage()
        configuration.keyStore = VolatileKeyStore()
        configuration.rotatesAutomatically = false
        configuration.logger = SilentLogger()
        configuration.attestation =
            switch try ordinary {
            case .ios:
                SimulatedAppAttest(iosAppID: "\(SoftwareDevice.team).\(appID)", authority: apple, directory: nil)
            case .android: SimulatedAndroid(package: appID.text, authority: google)
            }
        return SynheartAuth(configuration)
    }
}
